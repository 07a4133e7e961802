/* SPDX-License-Identifier: Apache-2.0 */
/* A build without MPI. */
#include "apps/link/transport/code.h"

const struct lnk_code *const lnk_mpi_code;
