/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/no_result.h"

#include "ipc/server/frame_rules.h"

const struct dmn_no_result_row dmn_no_results[DMN_NO_RESULT_COUNT] = {
    [DMN_NO_RESULT_NONE] = {"none", IPC_OK, NULL},
    [DMN_NO_RESULT_INVALID] = {"invalid", IPC_INVALID_ARGUMENT, NULL},
    [DMN_NO_RESULT_CREDIT] = {"no_credit", IPC_RESOURCE_EXHAUSTED, NULL},
    [DMN_NO_RESULT_MEMORY] = {"inline_memory", IPC_RESOURCE_EXHAUSTED, NULL},
    [DMN_NO_RESULT_POOL_LOST] = {"pool_lost", IPC_INVALID_ARGUMENT, IPC_POOL_LOST},
    [DMN_NO_RESULT_FULL] = {"pipeline_full", IPC_RESOURCE_EXHAUSTED, "the pipeline is full"},
    [DMN_NO_RESULT_NEWER] = {"newer_frame", IPC_DROPPED, "a newer frame took its place"},
    [DMN_NO_RESULT_LATE_ARRIVED] = {"deadline_not_feasible", IPC_DEADLINE_EXCEEDED,
                                    "the deadline cannot be met"},
    [DMN_NO_RESULT_LATE_PREPARING] = {"deadline_preparing", IPC_DEADLINE_EXCEEDED,
                                      "the deadline passed while the image was shrunk"},
    [DMN_NO_RESULT_LATE_WAITING] = {"deadline_waiting", IPC_DEADLINE_EXCEEDED,
                                    "the deadline passed while the frame waited"},
    [DMN_NO_RESULT_LATE_COMPUTING] = {"deadline_computing", IPC_DEADLINE_EXCEEDED,
                                      "the deadline passed between two stages"},
    [DMN_NO_RESULT_CANCELLED] = {"cancelled", IPC_CANCELLED, "cancelled"},
    [DMN_NO_RESULT_UNLOADED] = {"model_unloaded", IPC_UNAVAILABLE, "the model was unloaded"},
    [DMN_NO_RESULT_TOO_LARGE] = {"boards_away", IPC_UNAVAILABLE,
                                 "the model is too large for this board, and other boards do not "
                                 "serve it now"},
    [DMN_NO_RESULT_STOPPING] = {"daemon_stopping", IPC_UNAVAILABLE, "the daemon is stopping"},
    [DMN_NO_RESULT_STOPPED] = {"daemon_stopped", IPC_UNAVAILABLE, "the daemon stopped"},
    [DMN_NO_RESULT_NO_THREAD] = {"no_thread", IPC_RESOURCE_EXHAUSTED,
                                 "no thread to shrink images larger than limits.slice_mpixels"},
    [DMN_NO_RESULT_NO_MEMORY] = {"out_of_memory", IPC_RESOURCE_EXHAUSTED,
                                 "out of memory for a large image"},
};
