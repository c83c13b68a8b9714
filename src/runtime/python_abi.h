// The part of CPython's stable ABI that launches from Python use, found at run time in the process that holds the interpreter: one library
// with and without Python, for every version from 3.9 on, and no header of it to build with. tests/runtime/test_python_calls.py runs them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tw::runtime::py {

struct Object;  // never looked into: reference counts and types are asked for by calls
using Size = std::ptrdiff_t;

struct MethodDefinition {  // PyMethodDef
    const char* name;
    void* function;
    int flags;
    const char* doc;
};
constexpr int fast_call = 0x0080;  // METH_FASTCALL: (self, arguments, count)
constexpr int keywords = 0x0002;   // METH_KEYWORDS, with METH_FASTCALL: (self, arguments, count, names)

// X(our name, exported symbol, result, parameters)
#define TW_PYTHON_CALLS(X)                                                                             \
    X(increment, "Py_IncRef", void, (Object*))                                                         \
    X(decrement, "Py_DecRef", void, (Object*))                                                         \
    X(type_of, "PyObject_Type", Object*, (Object*))                                                    \
    X(attribute, "PyObject_GetAttr", Object*, (Object*, Object*))                                      \
    X(call, "PyObject_Call", Object*, (Object * function, Object * given, Object * named))             \
    X(call_with, "PyObject_CallFunctionObjArgs", Object*, (Object * function, ...))                    \
    X(same_value, "PyObject_RichCompareBool", int, (Object*, Object*, int operation))                  \
    X(is_true, "PyObject_IsTrue", int, (Object*))                                                      \
    X(text, "PyUnicode_InternFromString", Object*, (const char*))                                      \
    X(tuple_new, "PyTuple_New", Object*, (Size))                                                       \
    X(tuple_size, "PyTuple_Size", Size, (Object*))                                                     \
    X(tuple_item, "PyTuple_GetItem", Object*, (Object*, Size))                                         \
    X(tuple_set, "PyTuple_SetItem", int, (Object*, Size, Object*))                                     \
    X(dict_new, "PyDict_New", Object*, ())                                                             \
    X(dict_set, "PyDict_SetItem", int, (Object*, Object*, Object*))                                    \
    X(dict_next, "PyDict_Next", int, (Object*, Size * at, Object * *key, Object * *value))             \
    X(to_double, "PyFloat_AsDouble", double, (Object*))                                                \
    X(to_integer, "PyLong_AsLongLong", long long, (Object*))                                           \
    X(to_unsigned, "PyLong_AsUnsignedLongLong", unsigned long long, (Object*))                         \
    X(from_integer, "PyLong_FromLongLong", Object*, (long long))                                       \
    X(capsule_new, "PyCapsule_New", Object*, (void*, const char*, void (*)(Object*)))                  \
    X(capsule_pointer, "PyCapsule_GetPointer", void*, (Object*, const char*))                          \
    X(function_new, "PyCFunction_NewEx", Object*, (MethodDefinition*, Object * self, Object * module)) \
    X(method_new, "PyDescr_NewMethod", Object*, (Object * type, MethodDefinition*))                    \
    X(error_set, "PyErr_SetString", void, (Object * type, const char*))                                \
    X(error_clear, "PyErr_Clear", void, ())                                                            \
    X(error_occurred, "PyErr_Occurred", Object*, ())                                                   \
    X(release_lock, "PyEval_SaveThread", void*, ())                                                    \
    X(take_lock, "PyEval_RestoreThread", void, (void*))

struct Calls {
#define TW_DECLARE(name, symbol, result, parameters) result(*name) parameters = nullptr;
    TW_PYTHON_CALLS(TW_DECLARE)
#undef TW_DECLARE
    Object *none = nullptr, *true_object = nullptr, *false_object = nullptr, *not_implemented = nullptr;
    Object *float_type = nullptr, *int_type = nullptr, *text_type = nullptr, *type_error = nullptr;
};

// nullptr: there is no CPython in this process, or one that lacks a call.
const Calls* calls();

// Of DLPack's exchange table (its version 1.3), which a tensor type carries as __dlpack_c_exchange_api__.
struct DlTensor {
    void* data;
    std::int32_t device_type, device_id;
    std::int32_t rank;
    std::uint8_t code, bits;
    std::uint16_t lanes;
    std::int64_t *shape, *strides;
    std::uint64_t byte_offset;
};
static_assert(sizeof(DlTensor) == 48 && offsetof(DlTensor, shape) == 24);
struct ExchangeTable {
    std::uint32_t major, minor;
    void* previous;
    void *allocate, *managed_from_object, *managed_to_object;
    int (*tensor_from_object)(Object*, DlTensor*);  // borrowed until control returns to the interpreter
    int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};
constexpr std::int32_t device_cuda = 2;

}  // namespace tw::runtime::py
