/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026, the natagg authors */

/* A strict C99 program that links the library and calls every function. */
#include <stdio.h>
#include <string.h>

#include "natagg/natagg.h"

static int failures = 0;

static void expect(int truth, const char* what) {
  if (truth) return;
  printf("failed: %s\n", what);
  ++failures;
}

static void null_workers_are_refused(void) {
  natagg_request request = 7;
  natagg_statistics statistics;
  natagg_partial partial;
  float value = 1;
  double doubles[2] = {1, 2};
  statistics.size = sizeof statistics;
  expect(natagg_allreduce_async(NULL, &value, &value, 1, NATAGG_FLOAT32, NATAGG_SUM, &request) ==
                 NATAGG_INVALID_ARGUMENT && request == 0, "allreduce_async(NULL)");
  expect(natagg_allreduce(NULL, &value, &value, 1, NATAGG_FLOAT32, NATAGG_SUM) ==
             NATAGG_INVALID_ARGUMENT, "allreduce(NULL)");
  expect(natagg_allreduce(NULL, doubles, doubles, 2, NATAGG_FLOAT64, NATAGG_AVERAGE) ==
             NATAGG_INVALID_ARGUMENT, "allreduce(NULL) of doubles");
  expect(natagg_wait(NULL, 1, 0) == NATAGG_INVALID_ARGUMENT, "wait(NULL)");
  expect(natagg_test(NULL, 1) == NATAGG_INVALID_ARGUMENT, "test(NULL)");
  expect(natagg_get_statistics(NULL, &statistics) == NATAGG_INVALID_ARGUMENT, "statistics(NULL)");
  partial.size = sizeof partial;
  expect(natagg_get_partial(NULL, 1, &partial) == NATAGG_INVALID_ARGUMENT, "partial(NULL)");
  expect(natagg_error_message(NULL, NULL, 0, NULL) == NATAGG_INVALID_ARGUMENT, "message(NULL)");
  natagg_shutdown(NULL);
  natagg_close(NULL);
}

static void options_carry_their_size(void) {
  natagg_options options;
  natagg_worker* worker = (natagg_worker*)&options;
  char error[256];
  expect(natagg_options_init(NULL, sizeof options) == NATAGG_INVALID_ARGUMENT, "init(NULL)");
  expect(natagg_options_init(&options, sizeof options + 8) == NATAGG_INVALID_ARGUMENT, "larger");
  expect(natagg_options_init(&options, sizeof options) == NATAGG_OK, "init");
  expect(options.size == sizeof options && options.connect_timeout_ms == 10000, "defaults");
  options.size = sizeof options + 8;
  expect(natagg_connect(&options, &worker, error, sizeof error) == NATAGG_INVALID_ARGUMENT &&
             worker == NULL && strstr(error, "size is") != NULL, "larger size is refused");
  options.size = sizeof options;
  expect(natagg_connect(&options, &worker, error, 12) == NATAGG_INVALID_ARGUMENT &&
             strcmp(error, "aggregators") == 0, "message is cut off");
  expect(natagg_connect(&options, NULL, NULL, 0) == NATAGG_INVALID_ARGUMENT, "connect(, NULL)");
}

int main(void) {
  expect(strcmp(natagg_version(), EXPECTED_VERSION) == 0, "version");
  expect(strcmp(natagg_status_string(NATAGG_TIMED_OUT), "timed out") == 0, "status_string");
  expect(natagg_status_string((natagg_status)-1000) != NULL, "status_string of none");
  expect(strcmp(natagg_gso_string(NATAGG_GSO_ON), "on") == 0, "gso_string");
  expect(natagg_gso_string((natagg_gso)1000) != NULL, "gso_string of none");
  null_workers_are_refused();
  options_carry_their_size();
  return failures == 0 ? 0 : 1;
}
