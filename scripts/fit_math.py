#!/usr/bin/env python3
"""Fits the polynomials of backends/llvm/math.cpp and prints backends/llvm/math_tables.h.

Each function is expanded in 60-digit decimals from its defining series and interpolated at Chebyshev nodes, which is within
a small factor of the minimax polynomial. The comment beside each table gives the largest error found, weighted by what the
term contributes to the function's value (so it compares with 6e-8 for f32 and 1.1e-16 for f64).

    python3 scripts/fit_math.py > backends/llvm/math_tables.h
"""
import struct
from decimal import Decimal as D, getcontext

getcontext().prec = 60
PI = D("3.14159265358979323846264338327950288419716939937510582097494459")


def series(first, ratio):
    """Sum of terms: the next is term * ratio(n), n = 1, 2, .."""
    total, term, n = first, first, 0
    while abs(term) > D(10) ** -58 or n < 3:
        n += 1
        term = term * ratio(n)
        total += term
        if term == 0:
            break
    return total


def exp_tail(r):  # (exp(r) - 1 - r) / r^2
    return series(D(1) / 2, lambda n: r / (n + 2))


def log_tail(z):  # (log((1+s)/(1-s)) - 2s) / s^3 with z = s^2: 2/3 + 2/5 z + ..
    return sum((D(2) / (2 * k + 3) * z**k for k in range(1, 60)), D(2) / 3)


def sin_tail(z):  # (sin(r) - r) / r^3
    return series(D(-1) / 6, lambda n: -z / ((2 * n + 2) * (2 * n + 3)))


def cos_tail(z):  # (cos(r) - 1 + z/2) / z^2
    return series(D(1) / 24, lambda n: -z / ((2 * n + 3) * (2 * n + 4)))


def asin_tail(z):  # (asin(x) - x) / x^3
    total, c, k = D(0), D(1), 0
    while k < 120:
        k += 1
        c = c * (2 * k - 1) / (2 * k)
        total += c / (2 * k + 1) * (z ** (k - 1) if k > 1 else 1)
    return total


def atan_tail(z):  # (atan(x) - x) / x^3
    return sum((D((-1) ** (k + 1)) / (2 * k + 3) * (z**k if k else 1) for k in range(90)), D(0))


def erf_over_x(z):  # erf(x) / x = 2/sqrt(pi) exp(-z) sum 2^n z^n / (2n+1)!!: all terms positive
    return 2 / PI.sqrt() * (-z).exp() * series(D(1), lambda n: 2 * z / (2 * n + 1))


def erfcx(x):  # erfc(x) exp(x^2), by its continued fraction (large x) or the series above
    if x > 3:
        f = x
        for k in range(400, 0, -1):
            f = x + D(k) / 2 / f
        return 1 / (f * PI.sqrt())
    getcontext().prec = 90
    value = (1 - x * erf_over_x(x * x)) * (x * x).exp()
    getcontext().prec = 60
    return +value


def normal_tail(x):  # normal_cdf(-x) exp(x^2 / 2)
    return erfcx(x / D(2).sqrt()) / 2


def cos_decimal(x):
    return series(D(1), lambda n: -x * x / ((2 * n - 1) * (2 * n)))


def nodes(low, high, count):
    return [(low + high) / 2 + (high - low) / 2 * cos_decimal(PI * (2 * k + 1) / (2 * count)) for k in range(count)]


def solve(rows, right):
    n = len(rows)
    a = [row + [r] for row, r in zip(rows, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(a[k][i]))
        a[i], a[pivot] = a[pivot], a[i]
        for k in range(i + 1, n):
            f = a[k][i] / a[i][i]
            a[k] = [x - f * y for x, y in zip(a[k], a[i])]
    x = [D(0)] * n
    for i in reversed(range(n)):
        x[i] = (a[i][n] - sum(a[i][k] * x[k] for k in range(i + 1, n))) / a[i][i]
    return x


def rounded(value, bits):
    return struct.unpack("f", struct.pack("f", float(value)))[0] if bits == 32 else float(value)


def polynomial(c, x):
    total = D(0)
    for k in reversed(c):
        total = total * x + D(k)
    return total


def emit(name, bits, coefficients, error):
    text = ", ".join(repr(rounded(c, bits)) for c in coefficients)
    print(f"inline constexpr double {name}F{bits}[] = {{{text}}};  // error {float(error):.1e}")


def fit(name, bits, f, low, high, degree, weight):
    low, high = D(low), D(high)
    at = nodes(low, high, degree + 1)
    c = solve([[x**k if k else D(1) for k in range(degree + 1)] for x in at], [f(x) for x in at])
    used = [rounded(v, bits) for v in c]
    grid = [low + (high - low) * k / 200 for k in range(201)]
    emit(name, bits, c, max(abs((polynomial(used, x) - f(x)) * weight(x)) for x in grid))


def fit_rational(name, bits, f, low, high, top, bottom, bend=None):
    """P(x)/Q(x) with Q(0) = 1, interpolating f; the error is relative. With `bend` the nodes are even in x / (x + bend), so denser near 0."""
    low, high = D(low), D(high)
    at = nodes(low, high, top + bottom + 1)
    if bend:
        bend = D(bend)
        at = [bend * u / (1 - u) for u in nodes(low / (low + bend), high / (high + bend), top + bottom + 1)]
    rows = [[x**k for k in range(top + 1)] + [-f(x) * x**k for k in range(1, bottom + 1)] for x in at]
    c = solve(rows, [f(x) for x in at])
    p, q = [rounded(v, bits) for v in c[: top + 1]], [1.0] + [rounded(v, bits) for v in c[top + 1 :]]
    grid = [low + (high - low) * k / 400 for k in range(401)]
    error = max(abs(polynomial(p, x) / polynomial(q, x) / f(x) - 1) for x in grid)
    emit(name + "Top", bits, p, error)
    emit(name + "Bottom", bits, q, error)


def split(name, bits, value, high_bits, parts):
    """value = sum of parts, all but the last with high_bits significant bits, so that small multiples are exact."""
    out = []
    for k in range(parts):
        if k + 1 == parts:
            out.append(rounded(value, bits))
            break
        m, e = float(value), 0
        exponent = 0
        while abs(m) >= 1:
            m, exponent = m / 2, exponent + 1
        while abs(m) < 0.5:
            m, exponent = m * 2, exponent - 1
        unit = D(2) ** (exponent - high_bits)
        part = (value / unit).to_integral_value() * unit
        out.append(float(part))
        value -= part
    text = ", ".join(repr(v) for v in out)
    print(f"inline constexpr double {name}F{bits}[] = {{{text}}};")


def pi_of(bits):
    """pi * 2^bits, by Machin's 16 arctan(1/5) - 4 arctan(1/239)."""
    def arctan_of_inverse(n):
        term, total, k = (1 << (bits + 64)) // n, 0, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term, k = term // (n * n), k + 1
        return total
    return (16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)) >> 64


def two_over_pi(words):
    """As many words of 2/pi as angles up to 2^1024 take."""
    bits = 32 * (words - 2)
    value = (2 << (2 * bits + 64)) // pi_of(bits + 64)
    digits = [0, 0] + [(value >> (bits - 32 * (k + 1))) & 0xFFFFFFFF for k in range(words - 2)]
    print("// 2/pi = sum of kTwoOverPi[k] * 2^(32 - 32 k)")
    print(f"inline constexpr uint32_t kTwoOverPi[] = {{{', '.join(f'0x{d:08x}' for d in digits)}}};")


def main():
    half_ln2, quarter_pi = D(2).ln() / 2, PI / 4
    s = (D(2).sqrt() - 1) / (D(2).sqrt() + 1)
    t = D(2).sqrt() - 1
    print("// Written by scripts/fit_math.py. Coefficients from the constant term up; `error` is the largest relative error of the fit.")
    print("#pragma once\n#include <cstdint>\n")
    print("namespace tw::codegen {")
    for bits, exp, log, sin, cos, asin, atan in ((32, 4, 3, 3, 3, 5, 4), (64, 10, 7, 6, 6, 12, 10)):
        fit("kExp", bits, exp_tail, -half_ln2 * D("1.01"), half_ln2 * D("1.01"), exp, lambda r: r * r * (-r).exp())
        fit("kLog", bits, log_tail, 0, s * s, log, lambda z: z / 2)
        fit("kSin", bits, sin_tail, 0, quarter_pi**2, sin, lambda z: z)
        fit("kCos", bits, cos_tail, 0, quarter_pi**2, cos, lambda z: z * z * D("1.4"))
        fit("kAsin", bits, asin_tail, 0, D("0.25"), asin, lambda z: z)
        fit("kAtan", bits, atan_tail, 0, t * t, atan, lambda z: z)
        split("kLn2", bits, D(2).ln(), 12 if bits == 32 else 32, 2)
        split("kHalfPi", bits, PI / 2, 12 if bits == 32 else 33, 3)
    fit_rational("kErf", 32, erf_over_x, 0, D("15.4"), 6, 5)
    fit("kErfSmall", 64, erf_over_x, 0, 1, 12, lambda z: D(1))
    c = D("2.5")
    fit("kErfcx", 64, lambda u: erfcx(c * (1 + u) / (1 - u)), (1 - c) / (1 + c), (6 - c) / (6 + c), 18, lambda u: D(1))
    fit_rational("kNormal", 32, normal_tail, 0, D("13.3"), 4, 5, 4)
    fit_rational("kNormal", 64, normal_tail, 0, D("38"), 11, 12, 3)
    two_over_pi(39)
    print("}  // namespace tw::codegen")


main()
