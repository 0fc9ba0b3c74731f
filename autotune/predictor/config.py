"""Reads a configuration, which is one file a model in `configs/`, and fills in what it leaves out."""
import pathlib

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent / "configs"
KEYS = {"model", "title", "network", "features", "loss", "optimizer", "epochs", "patience", "select", "average", "trees", "rounds", "every",
        "base", "precision"}
DEFAULTS = {"network": {}, "epochs": 50, "patience": 10, "select": "loss", "average": 0.0, "precision": "f32"}


def merged(below, above):
    out = dict(below)
    for key, value in above.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def parse_change(text):
    """`loss.size=8` as {"loss": {"size": 8}}."""
    path, equal, value = text.partition("=")
    if not equal:
        raise ValueError(f"a change is KEY=VALUE, not '{text}'")
    out = yaml.safe_load(value)
    for key in reversed(path.split(".")):
        out = {key: out}
    return out


def load(name, changes=()):
    """By path or by name in the folder; `base` names a configuration that this one changes. Then come the changes."""
    path = pathlib.Path(name)
    if not path.exists():
        path = FOLDER / f"{name}.yaml"
    if not path.exists():
        raise ValueError(f"no configuration '{name}'; there are: {', '.join(sorted(p.stem for p in FOLDER.glob('*.yaml')))}")
    own = yaml.safe_load(path.read_text())
    if unknown := own.keys() - KEYS:
        raise ValueError(f"{path}: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(KEYS))}")
    config = merged(load(path.parent / f"{own['base']}.yaml") if "base" in own else DEFAULTS, own)
    kept = own.get("features")
    config["features"] = {kind: shape for kind, shape in config["features"].items() if kept is None or kind in kept}
    for change in changes:
        config = merged(config, parse_change(change))
    return {"name": path.stem, "title": path.stem, **{key: value for key, value in config.items() if key not in ("base", "name")}}
