/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026, the natagg authors */

/* The C interface of libnatagg-worker: all-reduce of gradients through a pool of aggregators.
 *
 * A worker is one rank of one job. Each worker has one thread of its own, which does all the work
 * on the network; a process may hold any number of workers.
 *
 *   natagg_options options;
 *   natagg_options_init(&options, sizeof options);
 *   options.aggregators = "10.0.0.1,10.0.0.2:4790";
 *   options.rank = rank;
 *   options.world = 4;
 *   natagg_worker* worker;
 *   char error[512];
 *   if (natagg_connect(&options, &worker, error, sizeof error) != NATAGG_OK) ...
 *   natagg_status status = natagg_allreduce(worker, gradient, gradient, count, NATAGG_FLOAT32,
 *                                           NATAGG_AVERAGE);
 *   natagg_close(worker);
 *
 * Order. All ranks of a job submit the same operations (count, type, reduction) in the same order.
 * When they do not, every rank's operations fail with NATAGG_MISMATCH and a text that names the
 * ranks and both operations.
 *
 * Numbers. Each value is rounded at random, with exact expectation, to a power of two from
 * 2^(-50 + shift) to 2^(10 + shift) with a sign, and so is the exact sum of the ranks' rounded
 * values. The result, for an average divided by world, is correctly rounded to the type: beyond
 * float16's largest, 65504, it becomes infinite. Zeros, infinities and NaN survive. All ranks
 * receive identical bits, which depend on the inputs, job seed, ranks and operation index alone:
 * not on timing, losses, packet size or the number of aggregators.
 *
 * Stragglers. With straggler_deadline_ms, the operations with a partial reduction do not wait for
 * ranks that are late: a chunk, the values of one packet, that has waited so long is answered with
 * the sum over the m ranks that are there, if they are a quorum, times world / m; an average is that
 * sum divided by m. All ranks, the late ones too, receive the same bits. natagg_get_partial() says
 * how many chunks lack which ranks. A rank may be behind by 14 windows of chunks and still gets all
 * results. One that is later still, and does not catch up in half a second or a straggler deadline,
 * is left behind: its operations fail. The others go on with partial reductions without a rank that
 * was left behind or lost, as long as they are a quorum.
 *
 * Failure is final. Every operation has a deadline. When one passes, or a rank or an aggregator is
 * lost, every operation in flight fails, later ones are refused with the same status, and the
 * ranks connect again to go on. natagg_error_message() has the reason and the rank at fault. The
 * contents of an output buffer are undefined after its operation failed.
 *
 * Threads. Any thread may call any function on a worker at any time, except as natagg_close()
 * says. With several threads that submit, the caller orders the submissions (see Order). Any
 * number of threads may wait for or test one request, submitted by whichever: all get the same
 * answer.
 *
 * Ending. natagg_shutdown() aborts: it ends what is in flight and all waits, at once and for good,
 * and the job's other ranks fail with NATAGG_RANK_LOST if they still need this one. Then the
 * threads that use the worker are joined, and natagg_close() frees it.
 *
 * Processes. A worker belongs to the process that connected it. In a child of fork() every call on
 * a worker of the parent fails with NATAGG_WRONG_PROCESS, whatever the parent's threads were doing,
 * and natagg_shutdown() and natagg_close() do nothing: nothing is sent, and the parent's operations
 * go on. The child's copies of sockets and memory last until it ends or, as the sockets are closed
 * on exec, until that. It may connect workers of its own.
 *
 * Signals. No function may be called from a signal handler. Handlers that interrupt a call change
 * nothing: it goes on waiting. Worker threads block all signals but those that report a fault of
 * the thread itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS), so handlers run on the
 * program's own threads. The library causes no SIGPIPE.
 *
 * The library writes to no stream, never exits or aborts, throws nothing across this interface, and
 * keeps no state outside workers.
 */
#ifndef NATAGG_NATAGG_H
#define NATAGG_NATAGG_H

#include <stddef.h>
#include <stdint.h>

#include "natagg/status.h"

#if defined(__GNUC__)
#define NATAGG_API __attribute__((visibility("default")))
#else
#define NATAGG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct natagg_worker natagg_worker;

/* An operation in flight or past: a plain number with nothing to free, valid until the worker is
 * closed, however often it is waited for. A worker's requests count up from 1 in the order of
 * submission, so 0 never is one. */
typedef uint64_t natagg_request;

/* The last enumerator of each enum keeps it 32 bits wide, so that any number may be passed and is
 * refused by name. */
typedef enum natagg_type {
  NATAGG_FLOAT32 = 0,   /* IEEE 754 binary32, C's float */
  NATAGG_FLOAT64 = 1,   /* binary64, C's double */
  NATAGG_FLOAT16 = 2,   /* binary16; in C, uint16_t may hold its bits */
  NATAGG_BFLOAT16 = 3,  /* the upper half of a binary32; likewise */
  NATAGG_TYPE_32_BITS = 0x7FFFFFFF
} natagg_type;

typedef enum natagg_reduction {
  NATAGG_SUM = 0,
  NATAGG_AVERAGE = 1,  /* the sum divided by world */
  /* The same, but each part of the result may be without ranks that are late: see Stragglers */
  NATAGG_PARTIAL_SUM = 2,
  NATAGG_PARTIAL_AVERAGE = 3,
  NATAGG_REDUCTION_32_BITS = 0x7FFFFFFF
} natagg_reduction;

typedef enum natagg_rounding {
  NATAGG_STOCHASTIC = 0,  /* unbiased: the expectation of every value is exact */
  NATAGG_NEAREST = 1,     /* deterministic and biased: for comparisons and tests */
  NATAGG_ROUNDING_32_BITS = 0x7FFFFFFF
} natagg_rounding;

/* How to connect. natagg_options_init() fills in the defaults given in brackets. "All ranks": the
 * aggregator refuses a rank whose value differs from the others'. */
typedef struct natagg_options {
  size_t size;  /* sizeof(natagg_options), set by natagg_options_init() */

  /* The pool: "address[:port][,address[:port]...]" in numeric IPv4, each the first shard of one
   * aggregator, in the same order on all ranks. [none; port 4790] */
  const char* aggregators;
  uint32_t job;    /* number of the job; one aggregator serves several. All ranks [0] */
  uint32_t rank;   /* of this worker, 0 to world - 1 [0] */
  uint32_t world;  /* ranks in the job, 1 to 65,535. All ranks [1] */
  uint64_t seed;   /* of the job's randomness. All ranks [0] */
  natagg_rounding rounding;  /* All ranks [NATAGG_STOCHASTIC] */
  int32_t shift;   /* moves the window of exponents, -64 to 64: see Numbers. All ranks [0] */

  /* Values a packet: a multiple of 128 up to 8,832, which every path must carry, or 0 for the most
   * that every path carries (1,408 at MTU 1500, 8,832 at MTU 9000). All ranks [0] */
  uint32_t values_per_packet;
  uint32_t window;  /* chunks under way per shard at most, a power of two [256] */

  uint32_t connect_timeout_ms;     /* for all ranks to have joined, at least 1 [10,000] */
  uint32_t operation_timeout_ms;   /* from submission to completion, at least 1 [30,000] */
  uint32_t heartbeat_ms;           /* between signs of life of an idle worker, at least 1 [100] */
  /* Silence after which an aggregator is lost for good; more than heartbeat_ms. One that restarts
   * within it is joined again, and what is running goes on. Where the pool has others, they take
   * over its chunks after 1 s, or 4 heartbeats if that is more. [5,000] */
  uint32_t aggregator_timeout_ms;

  /* Numeric IPv4 address to send from, or name of the interface to use; NULL or "": the route to
   * the aggregators decides. [NULL] */
  const char* local;

  /* Bytes to ask for as the socket's receive buffer; 0: enough for the window. The kernel clamps it
   * to net.core.rmem_max, and packets under way are limited to what it granted. Refused with memif,
   * whose memory is shared with the aggregator, and with ethdev. [0] */
  uint64_t receive_buffer_bytes;

  int32_t multicast;  /* nonzero: receive results by multicast where the network can [1] */

  /* For tests: probability, 0 to 1, of losing each datagram that is sent or received, and the
   * seed of the losses. [0, 0, 0] */
  double transmit_loss;
  double receive_loss;
  uint64_t loss_seed;

  /* File with the job's key, of 32 to 4,096 bytes that nobody else may read (chmod 600): every
   * packet is then authenticated, and the aggregators must have the same key. NULL or "": none.
   * Read by natagg_connect(). All ranks [NULL] */
  const char* key_file;

  /* How long a chunk of an operation with a partial reduction may wait for ranks, counted from the
   * first that has sent it, up to 65,535; 0: such operations are refused. At most 512 ranks then.
   * Counted in steps of the aggregator's 10 ms. All ranks [0] */
  uint32_t straggler_deadline_ms;
  uint32_t quorum;  /* ranks that a partial result has at least; 0: more than half. All ranks [0] */

  /* How packets travel: NULL, "" or "udp" by UDP sockets; "memif:PATH[,id=N]" through memory shared
   * with an aggregator of this host, whose device net_memif with role=server, id=N [0] and
   * socket=PATH serves this worker alone. Then `local` is an address or nothing, multicast is not
   * used, and natagg_connect() waits for an aggregator that is not there yet; "ethdev:DEVICE" over
   * a network device that DPDK drives for this worker alone, in a library that was built with DPDK.
   * DEVICE is the argument of DPDK's --vdev or -a: net_af_packet0,iface=eth1 or 0000:81:00.0. Then
   * `local` is an IPv4 address that the kernel does not have (none: a link-local one is chosen),
   * and the aggregators are on the device's own Ethernet segment. [NULL] */
  const char* transport;

  /* Arguments of DPDK's environment (EAL) for ethdev, separated by blanks: "-l 3 -m 512". A process
   * has one environment: the first worker that needs it starts it, unless the application has, and
   * it stays to the end of the process; later workers' arguments are not used. NULL or "":
   * "--no-huge -m 256", memory for about five devices. What is not given of lcores, file prefix and
   * devices is chosen so that processes of one host do not meet. EAL prints to the standard streams
   * what it does not understand. [NULL] */
  const char* eal;

  /* For so long after a packet came or an operation was submitted, up to 1,000,000, the worker's
   * thread looks for the next packet instead of sleeping: that saves the time to wake up, and takes
   * a core; 0: never. [0] */
  uint32_t busy_poll_us;

  /* Threads that send and receive, 1 to 64 (0 is 1): they divide the shards of the pool among them,
   * at most one for each shard. Ranks may differ. Over `udp` alone; each has a socket, and buffers,
   * of its own. [1] */
  uint32_t io_threads;

  /* With udp, nonzero: packets to one aggregator leave the kernel's stack together (UDP
   * segmentation offload, GSO) where kernel and device can and the path to that aggregator has
   * been found to carry it, and those that come together are received so (GRO). 0: never. `gso` in
   * natagg_statistics says what came of it. [1] */
  int32_t gso;

  /* File for every packet that this worker sends and receives, a capture (pcap, times in ns) for
   * natagg-replay, tcpdump and Wireshark. Created or emptied by natagg_connect(), whole after
   * natagg_close(), and each worker needs one of its own. A thread of its own writes it and holds
   * nothing up: packets that come faster than it writes are left out, and a write that fails ends
   * the recording but not the job; `unrecorded_packets` and `record_error` in natagg_statistics
   * tell. Without a key the file shows the gradients to one byte. NULL or "": none. [NULL] */
  const char* record;
} natagg_options;

/* Whether packets leave together, by UDP segmentation offload. */
typedef enum natagg_gso {
  NATAGG_GSO_OFF = 0,          /* by the option, the transport or an older kernel */
  NATAGG_GSO_PROBING = 1,      /* aggregators are being asked with packets that left so */
  NATAGG_GSO_NOT_CARRIED = 2,  /* no such packet was answered, or later ones were lost */
  NATAGG_GSO_REFUSED = 3,      /* the kernel said that it cannot, for this device or route */
  NATAGG_GSO_ON = 4,           /* in use, on the way to one aggregator at least */
  NATAGG_GSO_32_BITS = 0x7FFFFFFF
} natagg_gso;

/* What a worker has done. Counts are since natagg_connect(). */
typedef struct natagg_statistics {
  size_t size;                  /* sizeof(natagg_statistics), set by the caller */
  uint64_t data_packets;        /* chunks sent, with retransmissions */
  uint64_t retransmissions;
  uint64_t result_packets;      /* results received and used */
  uint64_t duplicate_results;
  uint64_t rejected_packets;    /* malformed, foreign or stale */
  uint64_t multicast_results;   /* results that arrived by multicast */
  uint64_t bytes_sent;          /* UDP payload of all packets */
  uint64_t bytes_received;
  uint64_t kernel_drops;        /* datagrams that found the receive buffer full */
  uint64_t send_failures;       /* datagrams that the transport would not take */
  uint64_t injected_losses;     /* by transmit_loss and receive_loss */
  uint64_t values_clipped;      /* of this rank's inputs: above 2^(10 + shift), which biases */
  uint64_t values_flushed;      /* below 2^(-50 + shift) and rounded to zero */
  uint64_t values_zero;
  uint64_t values_inf;
  uint64_t values_nan;
  uint64_t round_trip_ns;       /* smoothed, the slowest shard's */
  uint64_t receive_buffer_bytes;  /* granted, as the kernel counts: about twice what was asked */
  uint32_t packets_in_flight;   /* limit that the room for what is received sets */
  uint32_t mtu;                 /* bytes, of the link towards the aggregators */
  uint32_t values_per_packet;   /* agreed */
  uint32_t window;              /* agreed, per shard */
  uint32_t shards;              /* of the whole pool */
  uint32_t multicast_groups;    /* listened to */
  uint32_t io_threads;
  natagg_gso gso;               /* whether packets leave together; see natagg_gso */
  uint64_t gso_packets;         /* sent, in one piece with others as far as this host's device */
  uint64_t gro_packets;         /* received, in one piece with others */
  uint64_t recorded_packets;    /* in the file of the option `record`, or on their way to it */
  uint64_t unrecorded_packets;  /* that the file lacks: with any, it is no full record */
  int32_t record_error;         /* errno of the write that ended the recording; 0: none has */
} natagg_statistics;

/* Which ranks the results of an operation are without. */
typedef struct natagg_partial {
  size_t size;              /* sizeof(natagg_partial), set by the caller */
  uint64_t chunks;          /* of the operation */
  uint64_t partial_chunks;  /* of those, the ones without some rank */
  uint64_t missing[8];      /* bit r % 64 of word r / 64: a chunk is without rank r */
  uint32_t least_ranks;     /* that any chunk has; world when none is partial */
  /* world / m, where m ranks are in a value, in the mean of all values: by how much the variance of
   * a mean of independent ranks' values has grown. 1 when no chunk is partial. */
  double variance_inflation;
} natagg_partial;

/* Fills the first `size` bytes of `options`, which is sizeof(natagg_options), with the defaults.
 * NATAGG_INVALID_ARGUMENT when `options` is NULL or `size` is less than the size member, or more
 * than this library's natagg_options (the program was built for a later version). */
NATAGG_API natagg_status natagg_options_init(natagg_options* options, size_t size);

/* Joins the job and waits until all ranks have, for connect_timeout_ms at most. On NATAGG_OK
 * `*worker` is the new worker, to be freed with natagg_close(). Otherwise it is NULL and the
 * reason, cut off at `error_size` bytes with its terminating zero, is in `error`, which may be NULL.
 * The strings in `options` are copied. An options->size smaller than this library's leaves the
 * missing members at their defaults; a larger one is refused.
 * Errors: NATAGG_INVALID_ARGUMENT (the text names the option), NATAGG_TIMED_OUT,
 * NATAGG_REFUSED, NATAGG_RANK_LOST, NATAGG_AGGREGATOR_LOST, NATAGG_NO_MEMORY,
 * NATAGG_SYSTEM_ERROR. */
NATAGG_API natagg_status natagg_connect(const natagg_options* options, natagg_worker** worker,
                                        char* error, size_t error_size);

/* Submits an all-reduce of `count` values of `type` and returns at once with its number in
 * `*request`. `out` receives the result and may equal `in` (in place), but not overlap it
 * otherwise. Both are aligned to the type's size, and stay untouched by the caller until the
 * request has ended. `count` is any number from 0, where the pointers may be NULL, up to 2^56 - 1.
 * At most 65,536 operations of a worker are in flight at a time.
 * Errors, upon which nothing has been submitted and `*request` is 0: NATAGG_INVALID_ARGUMENT,
 * NATAGG_NO_MEMORY, NATAGG_CLOSED, NATAGG_WRONG_PROCESS, or the status with which the worker failed
 * earlier. */
NATAGG_API natagg_status natagg_allreduce_async(natagg_worker* worker, const void* in, void* out,
                                                uint64_t count, natagg_type type,
                                                natagg_reduction reduction,
                                                natagg_request* request);

/* Waits for the end of `request`, for `timeout_us` microseconds at most (0: not at all; more than a
 * year counts as a year), or without limit (until its own deadline ends it) when that is negative.
 * NATAGG_OK: the result is in place. NATAGG_IN_PROGRESS: it has not ended yet.
 * NATAGG_INVALID_ARGUMENT: there was no such request. NATAGG_WRONG_PROCESS: see Processes.
 * Anything else: it failed so. Waiting again for an ended request gives the same answer. The caller
 * may use the buffers again from when any thread got an answer but NATAGG_IN_PROGRESS. */
NATAGG_API natagg_status natagg_wait(natagg_worker* worker, natagg_request request,
                                     int64_t timeout_us);

/* natagg_wait() with a timeout of 0. */
NATAGG_API natagg_status natagg_test(natagg_worker* worker, natagg_request request);

/* natagg_allreduce_async() and natagg_wait() without limit. */
NATAGG_API natagg_status natagg_allreduce(natagg_worker* worker, const void* in, void* out,
                                          uint64_t count, natagg_type type,
                                          natagg_reduction reduction);

/* Leaves the job, from any thread and without waiting: operations in flight fail with
 * NATAGG_CLOSED, which ends all waits, and so do later submissions. When the worker had failed
 * before, its status stays. The worker itself stays valid. Buffers are the caller's again when
 * natagg_wait() says that their operation has ended. Does nothing when called again, or with
 * NULL. */
NATAGG_API void natagg_shutdown(natagg_worker* worker);

/* natagg_shutdown(), then frees the worker once every call on it in other threads has returned.
 * Takes about half a second at most, and buffers are the caller's again. No other call on the
 * worker may begin after this one has. Does nothing with NULL. */
NATAGG_API void natagg_close(natagg_worker* worker);

/* The status with which the worker failed and, in `buffer`, why, in words that name ranks, chunks,
 * aggregators and numbers, cut off at `size` bytes with the terminating zero. While the worker has
 * not failed: NATAGG_OK and the reason why the last refused call was, or "". `*rank` is the rank
 * at fault, -1 when it is none. `buffer` and `rank` may be NULL. */
NATAGG_API natagg_status natagg_error_message(natagg_worker* worker, char* buffer, size_t size,
                                              int32_t* rank);

/* Fills the first `statistics->size` bytes, which the caller has set to
 * sizeof(natagg_statistics), as of now. NATAGG_INVALID_ARGUMENT when that is larger than this
 * library's structure. */
NATAGG_API natagg_status natagg_get_statistics(natagg_worker* worker,
                                               natagg_statistics* statistics);

/* Fills the first `partial->size` bytes, which the caller has set to sizeof(natagg_partial), for an
 * operation that has ended with NATAGG_OK in a job with straggler_deadline_ms; the last 4,096 are
 * known. NATAGG_INVALID_ARGUMENT for any other request, or when the size is larger than this
 * library's. */
NATAGG_API natagg_status natagg_get_partial(natagg_worker* worker, natagg_request request,
                                            natagg_partial* partial);

/* A few words for `gso`, such as "on"; never NULL. */
NATAGG_API const char* natagg_gso_string(natagg_gso gso);

/* A few words for `status`, such as "timed out"; never NULL. */
NATAGG_API const char* natagg_status_string(natagg_status status);

/* Version of the library that is running, "major.minor.patch". */
NATAGG_API const char* natagg_version(void);

#ifdef __cplusplus
}
#endif
#endif
