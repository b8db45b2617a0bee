// The type of SharedMemoryClient.step: interpreter -> Step ->
// NativeClient::Step.
#include <cxxabi.h>

#include "client_py/bindings/native_client.h"

namespace tandem {
namespace py = pybind11;
namespace {

struct StepMethod {
  PyObject ob_base;
  PyObject* native;  // owns `client`; nullptr before __init__
  NativeClient* client;
};

StepMethod* Cast(PyObject* self) { return reinterpret_cast<StepMethod*>(self); }

// Call it in a catch block.
PyObject* Translated() {
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (...) {
    py::detail::try_translate_exceptions();
  }
  return nullptr;
}

int Init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* const kNames[] = {"native", nullptr};
  PyObject* native = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(kNames),
                                  &native) == 0) {
    return -1;
  }
  if (Cast(self)->native != nullptr) {  // a step in progress may use it
    PyErr_SetString(PyExc_TypeError,
                    "__init__: expected one call, found a second; make another "
                    "client");
    return -1;
  }
  py::detail::make_caster<NativeClient> caster;
  if (native == Py_None || !caster.load(native, /*convert=*/false)) {
    PyErr_Format(PyExc_TypeError, "native: expected a NativeClient, found %R",
                 native);
    return -1;
  }
  Cast(self)->client = py::detail::cast_op<NativeClient*>(caster);
  Py_INCREF(native);
  Cast(self)->native = native;
  return 0;
}

void Dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Py_XDECREF(Cast(self)->native);
  type->tp_free(self);
  Py_DECREF(type);
}

// Returns the one positional or keyword argument; nullptr after it has raised.
PyObject* Actions(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  if (count == 1 && named == 0) return args[0];
  if (count == 0 && named == 1 &&
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "actions") ==
          0) {
    return args[0];
  }
  PyErr_Format(PyExc_TypeError,
               "step: expected one argument, actions; found %zd and %zd named",
               count, named);
  return nullptr;
}

PyObject* Step(PyObject* self, PyObject* const* args, Py_ssize_t count,
               PyObject* names) {
  PyObject* const actions = Actions(args, count, names);
  if (actions == nullptr) return nullptr;
  NativeClient* const client = Cast(self)->client;
  if (client == nullptr) {
    PyErr_SetString(PyExc_TypeError,
                    "step: __init__ was not called; call super().__init__ in "
                    "the subclass");
    return nullptr;
  }
  try {
    return client->Step(actions);
  } catch (abi::__forced_unwind&) {
    throw;  // the interpreter exits and ends this thread
  } catch (...) {
    return Translated();
  }
}

// The text of help(). tandem/_native.pyi has the text for editors.
constexpr char kStepDoc[] =
    R"(step($self, actions)
--

Steps every environment once and waits for the results.

Args:
  actions: float32[num_envs, act_size], C-contiguous and finite, in the task's
    own units. Copied into the region, unless it is `client.actions` itself.
    Nothing is converted.

Returns:
  obs (float32[num_envs, obs_size]), rewards (float32[num_envs]) and dones
  (uint8[num_envs], 1: the episode is over): always the same views, valid until
  the next `step`, `send` or `reset`.

Raises:
  InvalidAction: The actions are not as above; nothing was sent.
  StepTimeout: The engine did not answer within the client's time-out; the
    step is still pending.
  PeerGone: The engine has stopped or died.
  EngineFailed: The engine reported a failure; the arrays are not results.
  StepPending: An earlier exchange was not received.
  BrokenPeer: The other side broke the protocol.
  ConcurrentUse: Another thread is inside a call.
  ForkedChild: The client belongs to this process's parent.
  ClientClosed: The client was closed.
)";

}  // namespace

py::object MakeStepMethodType() {
  // Static: the type uses both until the process ends.
  static PyMethodDef methods[] = {
      {"step", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Step)),
       METH_FASTCALL | METH_KEYWORDS, kStepDoc},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_init, reinterpret_cast<void*>(Init)},
      {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
      {Py_tp_methods, methods},
      {0, nullptr}};
  static PyType_Spec spec = {.name = "tandem._native.StepMethod",
                             .basicsize = sizeof(StepMethod),
                             .itemsize = 0,
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                             .slots = slots};
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(type);
}

}  // namespace tandem
