"""Compiled models in Python: numpy and the standard library are all that it needs, and this file.

    from tilewright import Model        # the wheel has it; else copy this file
    model = Model("model.so")
    y = model(x)                        # arrays in the model's order, or by name: model(image=x)

Licence: Apache-2.0 with the LLVM exception.
"""
import ctypes
import json
import os
import threading

import numpy as np

ABI_VERSION = 1
CANCELLED = 12
COMPUTED = -2 ** 63
STRING = 8
POINTER, FUNCTION = ctypes.POINTER, ctypes.CFUNCTYPE
# numpy's type for each tw_dtype. Types that numpy lacks get their bytes.
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, STRING: object, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 16: np.uint16, 17: np.uint8, 18: np.uint8,
          19: np.uint8, 20: np.uint8, 21: np.uint8, 22: np.int8, 23: np.uint8, 24: np.uint8, 25: np.uint8, 26: np.int8}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("dims", POINTER(ctypes.c_int64))]


class _Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", POINTER(ctypes.c_int64))]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("parallel", ctypes.c_void_p),
                ("arena", ctypes.c_void_p), ("arena_bytes", ctypes.c_uint64), ("symbols", POINTER(ctypes.c_int64)),
                ("queue", ctypes.c_void_p), ("weights", ctypes.c_char_p)]


_CONTEXT, _NUMBERS, _TENSORS = ctypes.c_void_p, POINTER(ctypes.c_int64), POINTER(_Tensor)
_DIMS = FUNCTION(None, ctypes.c_int32, _NUMBERS, _NUMBERS)


class _Api(ctypes.Structure):   # tw_api of tilewright.h
    _fields_ = [
        ("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("name", ctypes.c_char_p), ("target", ctypes.c_char_p),
        ("manifest", ctypes.c_char_p), ("input_count", ctypes.c_int32), ("output_count", ctypes.c_int32),
        ("symbol_count", ctypes.c_int32), ("inputs", POINTER(_Info)), ("outputs", POINTER(_Info)),
        ("symbols", POINTER(ctypes.c_char_p)), ("weight_bytes", ctypes.c_uint64), ("check_cpu", FUNCTION(ctypes.c_int)),
        ("arena_bytes", FUNCTION(ctypes.c_uint64, _NUMBERS)), ("input_dims", _DIMS), ("output_dims", _DIMS),
        ("create", FUNCTION(ctypes.c_int, POINTER(_Options), POINTER(_CONTEXT))), ("destroy", FUNCTION(None, _CONTEXT)),
        ("run", FUNCTION(ctypes.c_int, _CONTEXT, _TENSORS, _TENSORS)), ("status_text", FUNCTION(ctypes.c_char_p, ctypes.c_int)),
        ("last_error", FUNCTION(ctypes.c_char_p, _CONTEXT)), ("call_count", ctypes.c_int32),
        ("profile", FUNCTION(ctypes.c_int, _CONTEXT, _TENSORS, _TENSORS, POINTER(ctypes.c_uint64))),
        ("run_async", ctypes.c_void_p), ("wait", ctypes.c_void_p), ("device_count", ctypes.c_int32),
        ("device_stats", ctypes.c_void_p),
        ("output_of_run", FUNCTION(ctypes.c_int, _CONTEXT, ctypes.c_int32, _NUMBERS, POINTER(ctypes.c_void_p))),
        ("check_integrity", FUNCTION(ctypes.c_int)), ("cancel", FUNCTION(ctypes.c_int, _CONTEXT))]


class Error(RuntimeError):
    """What the library says; `status` is the tw_status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class _String(ctypes.Union):
    """tw_string: 8 bytes on every machine."""
    _fields_ = [("text", ctypes.c_char_p), ("slot", ctypes.c_uint64)]


def _pointers(texts, info):
    """An array of pointers to the texts, which it keeps alive."""
    encoded = []
    for text in texts.reshape(-1):
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"{info.name} is of texts, not of {type(text).__name__}")
        encoded.append(text if isinstance(text, bytes) else text.encode())
        if b"\0" in encoded[-1]:
            raise ValueError(f"{info.name}: a text with a zero byte")
    table = (_String * max(1, len(encoded)))(*[(text,) for text in encoded])
    return np.frombuffer(table, np.uint64, len(encoded)).reshape(texts.shape)


def _texts(pointers):
    """The texts as an array of str."""
    texts = [ctypes.string_at(p).decode() if p else "" for p in pointers.reshape(-1).tolist()]
    result = np.empty(len(texts), object)
    result[:] = texts
    return result.reshape(pointers.shape)


class Tensor:
    """What the model says of an input or output: dims are extents, names of symbols, or None for what is computed."""

    def __init__(self, info, symbols):
        self.name, self.dtype, self.onnx_dtype = info.name.decode(), np.dtype(DTYPES[info.dtype]), info.dtype
        self.is_text = info.dtype == STRING
        # The type of the elements in memory
        self.memory = np.dtype(np.uint64) if self.is_text else self.dtype
        self.dims = tuple(None if d == COMPUTED else d if d >= 0 else symbols[-1 - d] for d in info.dims[:info.rank])

    def __repr__(self):
        return f"{self.name}: {self.dtype}[{','.join('?' if d is None else str(d) for d in self.dims)}]"


class Model:
    """A compiled model with one context. Calls of several threads take turns; for more at once, open it several times.

    weights: their file, where it is apart and not beside the library."""

    def __init__(self, path, threads=0, weights=None):
        self._context, path = None, os.fspath(path)
        self._library = ctypes.CDLL(path if os.sep in path else os.path.join(".", path))
        query = self._library.tw_query
        query.restype, query.argtypes = POINTER(_Api), [ctypes.c_uint32]
        table = query(ABI_VERSION)
        if not table:
            raise Error(1, f"{path} does not serve version {ABI_VERSION} of the C interface")
        self._api = api = table.contents
        self.name, self.symbols = api.name.decode(), [s.decode() for s in api.symbols[:api.symbol_count]]
        self.inputs = [Tensor(i, self.symbols) for i in api.inputs[:api.input_count]]
        self.outputs = [Tensor(o, self.symbols) for o in api.outputs[:api.output_count]]
        self._lock = threading.Lock()
        options, context = _Options(size=ctypes.sizeof(_Options), threads=threads), ctypes.c_void_p()
        options.weights = None if weights is None else os.fsencode(weights)
        self._check(api.create(ctypes.byref(options), ctypes.byref(context)), None)
        self._context = context

    def __del__(self):
        if self._context:
            self._api.destroy(self._context)

    @property
    def manifest(self):
        """What the library says of the program that runs here, as `tilewright inspect --json` does."""
        whole, path = json.loads(self._api.manifest), self._api.target.decode()
        return next((p for p in whole.get("paths", []) if p["target"]["name"] == path), whole)

    def __call__(self, *arrays, **named):
        """An array for each input. The result: the output, or a tuple of them."""
        return self._results(arrays, named, self._api.run)

    def profile(self, *arrays, **named):
        """Nanoseconds of each kernel call of a run, in their order."""
        ns = (ctypes.c_uint64 * self._api.call_count)()
        self._results(arrays, named, lambda context, inputs, outputs: self._api.profile(context, inputs, outputs, ns))
        return list(ns)

    def cancel(self):
        """From another thread: the run in progress raises Error, of status CANCELLED."""
        if self._api.size <= _Api.cancel.offset:
            raise Error(10, "the library is older than cancel")
        self._check(self._api.cancel(self._context), self._context)

    def _check(self, status, context):
        if status:
            said = self._api.last_error(context).decode()
            raise Error(status, self._api.status_text(status).decode() + (f": {said}" if said else ""))

    def _arrays(self, arrays, named):
        names = [i.name for i in self.inputs]
        given = dict(zip(names, arrays), **named)
        if len(arrays) > len(names) or len(given) != len(arrays) + len(named) or set(given) != set(names):
            raise TypeError(f"{self.name} takes {', '.join(names) or 'no inputs'}")
        return [self._array(given[i.name], i) for i in self.inputs]

    @staticmethod
    def _array(value, info):
        """Dense and of the model's type. An array that would lose digits is refused: whoever wants that says it with astype.
        Numbers and lists of Python, which have no type, become what the model takes."""
        if info.is_text:
            return _pointers(np.asarray(value, object), info)
        rule = "safe" if hasattr(value, "dtype") else "same_kind"
        value = np.asarray(value)
        if not np.can_cast(value.dtype, info.dtype, rule):
            raise TypeError(f"{info.name} is {info.dtype}, not {value.dtype}: .astype(np.{info.dtype}) says that it may be rounded")
        # ascontiguousarray makes a scalar a row.
        return np.ascontiguousarray(value, info.dtype).reshape(value.shape)

    def _sizes(self, inputs):
        """The symbols' values; what does not fit is for the library to say."""
        found = {name: size for i, a in zip(self.inputs, inputs) for name, size in zip(i.dims, a.shape) if isinstance(name, str)}
        return (ctypes.c_int64 * max(1, len(self.symbols)))(*(found.get(s, 1) for s in self.symbols))

    @staticmethod
    def _tensor(data, nbytes, info, dims):
        return _Tensor(data, nbytes, info.onnx_dtype, len(info.dims) if dims is None else len(dims),
                       None if dims is None else (ctypes.c_int64 * max(1, len(dims)))(*dims))

    def _results(self, arrays, named, run):
        inputs = self._arrays(arrays, named)
        symbols = self._sizes(inputs)
        outputs = []   # None: the data decide about its size
        for i, info in enumerate(self.outputs):
            dims = (ctypes.c_int64 * max(1, len(info.dims)))()
            self._api.output_dims(i, symbols, dims)
            shape = dims[:len(info.dims)]
            outputs.append(None if any(d < 0 for d in shape) else np.empty(shape, info.memory))
        given = (_Tensor * max(1, len(inputs)))(*(self._tensor(a.ctypes.data, a.nbytes, i, a.shape) for a, i in zip(inputs, self.inputs)))
        wanted = (_Tensor * max(1, len(outputs)))(*(
            self._tensor(None, 0, i, None) if a is None else self._tensor(a.ctypes.data, a.nbytes, i, a.shape)
            for a, i in zip(outputs, self.outputs)))
        with self._lock:
            self._check(run(self._context, given, wanted), self._context)
            results = [self._made(i) if a is None else a for i, a in enumerate(outputs)]
            # The next run reuses the memory of the texts.
            results = [_texts(a) if info.is_text else a for a, info in zip(results, self.outputs)]
        return results[0] if len(results) == 1 else tuple(results)

    def _made(self, i):
        """A copy of an output in the library's memory."""
        info, data = self.outputs[i], ctypes.c_void_p()
        dims = (ctypes.c_int64 * max(1, len(info.dims)))()
        self._check(self._api.output_of_run(self._context, i, dims, ctypes.byref(data)), self._context)
        result = np.empty(dims[:len(info.dims)], info.memory)
        if result.nbytes:
            ctypes.memmove(result.ctypes.data, data.value, result.nbytes)
        return result
