# SPDX-License-Identifier: Apache-2.0
# The module that ipc/python/make_library.py makes: all of it is C's.
from typing import Any

ffi: Any
lib: Any
