# SPDX-License-Identifier: Apache-2.0
"""The shapes of messages that the Open Inference Protocol v2 and its binary extension prescribe, and a check against them.

Written after the protocol's published REST specification: required keys, types, and nothing between.
"""
from daemon import check

TEXT, FLAG, WHOLE = str, bool, int
DATATYPES = {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES"}


def list_of(item):
    return lambda v, at: isinstance(v, list) and all(fits(item, x, at) for x in v)


def tensor_data(value, _at):
    """Numbers, texts and flags, in a list or in lists of lists."""
    if isinstance(value, list):
        return all(tensor_data(v, _at) or isinstance(v, (int, float, str, bool)) for v in value)
    return False


def datatype(value, _at):
    return value in DATATYPES


METADATA_TENSOR = {"name": TEXT, "datatype": datatype, "shape": list_of(WHOLE)}
TENSOR = dict(METADATA_TENSOR, data=tensor_data)
OPTIONAL = {"id": TEXT, "parameters": {}, "model_version": TEXT, "versions": list_of(TEXT), "outputs": None}
SCHEMAS = {
    "server": {"name": TEXT, "version": TEXT, "extensions": list_of(TEXT)},
    "model": {"name": TEXT, "platform": TEXT, "inputs": list_of(METADATA_TENSOR), "outputs": list_of(METADATA_TENSOR)},
    "model_ready": {"name": TEXT, "ready": FLAG},
    "live": {"live": FLAG},
    "models": {"models": list_of(TEXT)},
    "request": {"inputs": list_of(TENSOR)},
    "response": {"model_name": TEXT, "outputs": list_of(TENSOR)},
    "error": {"error": TEXT},
}


def fits(schema, value, at):
    if callable(schema) and not isinstance(schema, type):
        return schema(value, at)
    if isinstance(schema, type):
        return isinstance(value, schema) and not (schema is int and isinstance(value, bool))
    if not isinstance(value, dict):
        return False
    for key, inner in schema.items():
        check(key in value, at, "lacks", key, value)
        check(fits(inner, value[key], at + "." + key), "%s.%s is wrong:" % (at, key), value[key])
    for key, inner in OPTIONAL.items():
        check(key not in value or key in schema or inner is None or fits(inner, value[key], at), at, key, value)
    return True


def check_against(name, value):
    check(fits(SCHEMAS[name], value, name), "this is not a %s:" % name, value)
