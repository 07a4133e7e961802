# SPDX-License-Identifier: Apache-2.0
"""The house's rooms: which folder may use which. One table for includes and for calls.

A room is a source folder, and every file of the product is in one; only tests and benches are outside, and use any room. A
room may use the rooms that its line names, and whatever those may use, but not what the line names behind a "!". A name that
ends in ".h" is a contract: a header of a higher room that the line's room may include, but whose functions it may not call.
"""
import os

import source

ROOMS = {
    # The lowest: every other room may use it.
    "base": "",
    "base/cli": "base",
    "base/leaves": "base",
    "governor": "base",
    "ipc": "base",
    "ipc/boards": "ipc",
    "ipc/control": "ipc",
    "ipc/client": "ipc",
    "ipc/decode": "ipc/client",
    "ipc/server": "ipc",
    "model/common": "model/model.h base/leaves",
    "model/onnx": "model/common",
    "model/netdesc": "model/common",
    "model/ir": "model/common",
    "model/lower": "model/ir",
    "model/quant": "model/ir",
    "model/compile": "model/lower model/quant",
    "model": "base/leaves model/onnx model/netdesc model/compile",
    "model/segment": "model",
    # What a primitive is made of sees the contracts that the top of kernels/ declares.
    "kernels/common": "model kernels/primitive.h kernels/table.h",
    "kernels/image": "kernels/common",
    "kernels/ref": "kernels/image",
    "kernels/f32": "kernels/ref",
    "kernels/i8": "kernels/f32",
    "kernels/lib": "kernels/i8",
    "kernels": "kernels/lib",
    "kernels/select": "kernels",
    "kernels/int8cal": "kernels/select",
    "pipeline": "kernels/int8cal",
    # Plain data only: a search touches no thread, file or clock.
    "tuner": "pipeline/plan pipeline/plan_check pipeline/plan_counts pipeline/stats governor",
    "tuner/oneboard": "tuner",
    "tuner/boards": "tuner/oneboard",
    "tuner/solve": "tuner/boards",
    "tuner/search": "tuner/solve",
    "tuner/adapt": "tuner/solve",
    "tuner/json": "tuner/adapt",
    "daemon/service": "ipc/server pipeline/members",
    "daemon/config": "daemon/service governor model/segment kernels/int8cal pipeline tuner/search tuner/json",
    "daemon/machine": "daemon/config",
    "daemon/models": "daemon/machine ipc/decode",
    "daemon/frames": "daemon/models",
    "daemon/plans": "daemon/models",
    "daemon/adapt": "daemon/frames daemon/plans",
    "daemon/boards": "daemon/plans ipc/boards",
    "daemon/control": "daemon/adapt daemon/boards",
    "daemon": "daemon/control base/cli",
    # What is built on libpiped, and what several of these programs share.
    "apps/page": "base",
    "apps/show": "ipc/decode",
    "apps/picture": "apps/show",
    "apps/pipectl/common": "base/cli ipc/boards ipc/control ipc/server/frame_rules apps/page apps/picture",
    "apps/pipectl/bench": "apps/pipectl/common",
    "apps/pipectl/commands": "apps/pipectl/common",
    "apps/pipectl/doctor": "apps/pipectl/common",
    "apps/pipectl/infer": "apps/pipectl/common",
    "apps/pipectl/models": "apps/pipectl/commands",
    "apps/pipectl/report": "apps/pipectl/commands apps/pipectl/doctor",
    "apps/pipectl/top": "apps/pipectl/common",
    "apps/pipectl/trace": "apps/pipectl/common",
    "apps/pipectl": "apps/pipectl/bench apps/pipectl/infer apps/pipectl/models apps/pipectl/report apps/pipectl/top "
                    "apps/pipectl/trace",
    "apps/http": "base/cli ipc/control apps/picture",
    "apps/gstreamer": "ipc apps/show",
    # piped-link: messages and transports, then what its parts share, then the parts.
    "apps/link/wire": "ipc ipc/boards",
    "apps/link/transport": "apps/link/wire",
    "apps/link/common": "base/cli ipc/client ipc/control apps/link/transport",
    "apps/link/front": "ipc/server ipc/boards",
    "apps/link/weights": "base/leaves apps/link/common",
    "apps/link/route": "apps/link/front apps/link/weights",
    "apps/link/hop": "apps/link/route",
    "apps/link": "base/cli apps/link/hop",
    # A program inside a library's folder, which uses nothing of it.
    "tuner/pipesim": "base/cli model tuner/search tuner/json apps/page !governor",
}
OUTSIDE = ("tests", "bench", "docs")  # these may use any room, and no room uses them


def stem(name):
    """A header and its implementation are one thing: the path without what follows the dot."""
    return name.split(".")[0]


def room_of(name):
    """The room of a file, or None if it is in none."""
    folder = os.path.dirname(name)
    while folder and folder not in ROOMS:
        folder = os.path.dirname(folder)
    return folder or None


def house_files(root, endings=(".c", ".h")):
    """The sources of the house: those that are in a room, or should be."""
    return [n for n in source.files(root) if n.endswith(endings) and n.split("/")[0] not in OUTSIDE]


def below(room):
    """Everything that a room may use: rooms, contracts and single things ("pipeline/plan")."""
    found, left = set(), [room]
    while left:
        for word in ROOMS.get(left.pop(), "").split():
            if word not in found and word[0] != "!":
                found.add(word)
                left.append(word)
    return {word for word in found if "!" + word not in ROOMS.get(room, "").split()}


def may_use(name, target):
    """May the file `name` use the file `target`? A contract is used by including it, so `target` is that header then."""
    mine, theirs = room_of(name), room_of(target)
    if mine is None:
        return name.split("/")[0] in OUTSIDE
    return mine == theirs or bool({theirs, target, stem(target)} & below(mine))
