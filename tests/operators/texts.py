"""Operators on strings."""
import definitions
import numpy as np
from draw import operators


def words(d, shape, choices):
    return np.array([d.among(choices) for _ in range(int(np.prod(shape)))], object).reshape(shape)


@operators("StringConcat")
def string_concat(d):
    a, b = d.broadcast(2)
    return d.case(d.tensor(0, a), d.tensor(1, b))


@operators("StringNormalizer")
def string_normalizer(d):
    shape = d.among([(d.between(1, 6),), (1, d.between(1, 6))])
    ascii_alone = d.chance(0.6)   # onnxruntime has the locale C everywhere
    letters = ["Monday", "monday", "MONDAY", "a", "tuesday", ""] + ["été", "ÉTÉ"] * (not ascii_alone)
    case = d.case(words(d, shape, letters), case_change_action=d.maybe(d.among(["LOWER", "UPPER", "NONE"])), is_case_sensitive=d.maybe(d.pick(2)),
                  stopwords=d.maybe(d.among([["monday"], ["Monday", "a"], ["été"]])), locale="C" if ascii_alone else None)
    case.definition = lambda: definitions.string_normalizer(case.operands[0], **case.attributes)
    return case


@operators("StringSplit")
def string_split(d):
    x = words(d, d.shape(0, 2, most=4), ["a b c", "a,b,c", " lead", "trail ", "a  b", "", "one", ",,", "é, è"])
    return d.case(x, outputs=2, delimiter=d.maybe(d.among([" ", ",", ", ", ""])), maxsplit=d.maybe(d.between(1, 3), 0.4))


@operators("RegexFullMatch")
def regex_full_match(d):
    pattern = d.among([r"\d+", r"[a-z]+@[a-z]+\.com", r"a*b?", r"(ab|cd)+", r".*", r"[^,]+,[^,]+", r"\w{2,3}", r"x(?:y|z)*", r"é+", r"^abc$", r"a.c", r"\s*"])
    return d.case(words(d, d.shape(0, 2), ["123", "me@here.com", "aab", "abcd", "", "x,y", "abc", "xyzy", "éé", "a\nc", "12a", " "]), pattern=pattern)


@operators("Tokenizer", "com.microsoft")
def tokenizer(d):
    shape = (d.between(1, 4),) if d.chance(0.6) else (d.between(1, 3), d.between(1, 3))
    x = words(d, shape, ["a b c", "one,two", "abc", "x1y22z", " lead", "a;b c", "été là"])
    how = d.among([{"separators": [" "]}, {"separators": [",", " ", ";"]}, {"tokenexp": "[a-z]+"}, {"tokenexp": "[0-9]+|[a-z]"}])
    return d.case(x, mark=d.pick(2), mincharnum=d.between(1, 2), pad_value=d.among(["#", ""]), **how)


@operators("TfIdfVectorizer")
def tf_idf(d):
    text = d.chance(0.4)
    pool = ["a", "b", "c", "d"] if text else [1, 2, 3, 4]
    ones, twos = d.between(1, 3), d.between(1, 3)
    grams = [d.among(pool) for _ in range(ones)]
    grams = list(dict.fromkeys(grams))
    pairs = list(dict.fromkeys((d.among(pool), d.among(pool)) for _ in range(twos)))
    count = len(grams) + len(pairs)
    everything = grams + [g for pair in pairs for g in pair]
    shape = (d.between(1, 8),) if d.chance(0.5) else (d.between(1, 3), d.between(1, 8))
    x = words(d, shape, pool) if text else d.rng.integers(0, 6, shape).astype(d.among([np.int32, np.int64]))
    low = d.between(1, 2)
    return d.case(x, mode=d.among(["TF", "IDF", "TFIDF"]), min_gram_length=low, max_gram_length=2, max_skip_count=d.between(0, 3), ngram_counts=[0, len(grams)],
                  ngram_indexes=[int(i) for i in d.rng.permutation(count)], weights=d.maybe([d.real(0, 2) for _ in range(count)]),
                  **{"pool_strings" if text else "pool_int64s": everything})
