#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
