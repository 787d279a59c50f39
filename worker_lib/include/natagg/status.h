/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026, the natagg authors */

/* The outcome of every natagg call: 0 done, positive not yet, negative an error. */
#ifndef NATAGG_STATUS_H
#define NATAGG_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum natagg_status {
  NATAGG_OK = 0,
  NATAGG_IN_PROGRESS = 1,         /* the operation is still running */
  NATAGG_INVALID_ARGUMENT = -1,   /* the call itself is wrong; nothing has changed */
  NATAGG_TIMED_OUT = -2,          /* a deadline passed: of connecting, or of an operation */
  NATAGG_REFUSED = -3,            /* an aggregator refused the job's terms */
  NATAGG_RANK_LOST = -4,          /* another rank left, died or fell silent; or this one was left behind */
  NATAGG_MISMATCH = -5,           /* ranks submitted different operations */
  NATAGG_AGGREGATOR_LOST = -6,    /* an aggregator fell silent or restarted */
  NATAGG_CLOSED = -7,             /* the worker was closed with the operation in flight */
  NATAGG_NO_MEMORY = -8,
  NATAGG_SYSTEM_ERROR = -9,       /* a system call failed; the message names it */
  NATAGG_WRONG_PROCESS = -10      /* fork() made this process, its parent connected the worker */
} natagg_status;

#ifdef __cplusplus
}
#endif
#endif
