"""How far results are from a source's."""
import ml_dtypes
import numpy as np
from draw import type_name

WRONG = float("inf")
FLOAT_KINDS = {"float", "double", "float16", "bfloat16"}


def error(have, want, by_range, least=None):
    """In units of the last place of each element; or, where sums round, of the output's largest, at least 1. least: a type of less precision that
    operands have, whose unit it is then. Infinite where a shape, a type, a NaN, an infinity or anything exact differs."""
    if isinstance(want, list) or isinstance(have, list):
        if not isinstance(have, list) or not isinstance(want, list) or len(have) != len(want):
            return WRONG
        return max((error(h, w, by_range, least) for h, w in zip(have, want)), default=0.0)
    if have.shape != want.shape or type_name(have.dtype) != type_name(want.dtype):
        return WRONG
    if type_name(have.dtype) not in FLOAT_KINDS:
        same = have == want
        if have.dtype.kind not in "OUbiu":   # floats of 8 bits and fewer
            same = same | (np.isnan(have.astype(np.float32)) & np.isnan(want.astype(np.float32)))
        return 0.0 if np.all(same) else WRONG
    a, b = have.astype(np.longdouble), want.astype(np.longdouble)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return WRONG
    info = ml_dtypes.finfo(have.dtype)
    step = max(float(info.eps), float(ml_dtypes.finfo(least).eps) if least else 0)
    size = np.abs(b[finite])
    if by_range:
        size = np.maximum(size, size.max(initial=1))
    unit = np.maximum(size * np.longdouble(step), np.longdouble(float(info.smallest_subnormal)))
    return float((np.abs(a[finite] - b[finite]) / unit).max(initial=0)) if size.size else 0.0


def first_difference(have, want):
    """For a person."""
    if isinstance(want, list) or isinstance(have, list):
        return f"{have} for {want}"[:300]
    if have.shape != want.shape or have.dtype != want.dtype:
        return f"{have.dtype}{list(have.shape)} for {want.dtype}{list(want.shape)}"
    if have.dtype.kind in "OU":
        wrong = have != want
    else:
        a, b = (v.astype(np.longdouble if v.dtype.kind == "f" else np.float64 if v.dtype.kind not in "biu" else v.dtype) for v in (have, want))
        wrong = ~((a == b) | ((a != a) & (b != b)))
        if wrong.any() and have.dtype.kind not in "biu":
            with np.errstate(all="ignore"):
                off = np.where(wrong, np.nan_to_num(np.abs(a - b), nan=np.inf), -1)
            wrong = off == off.max()
    if not np.any(wrong):
        return "equal"
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"{have[at]} for {want[at]} at {list(at)}"
