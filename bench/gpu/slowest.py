"""Of each known network the five calls that take longest on the device."""
import time


def run(session, end):
    found, missing = {}, []
    for name, path in session.known().items():
        if time.monotonic() > end:
            missing.append(name)
            continue
        library, _ = session.compile(path, f"slowest_{name}")
        calls = session.call("profile", library, "--seconds", "0.02" if session.dry else "0.3")["calls"]
        calls.sort(key=lambda call: -call["ms"])
        found[name] = {"ms": sum(call["ms"] for call in calls), "calls": len(calls), "slowest": calls[:5]}
    return {"networks": found, "no time for": missing}
