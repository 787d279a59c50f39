// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// DPDK's environment abstraction layer, of which a process has one in its life. All workers of the
// process share it, and so does an application that has started it before: then it is used as it
// is, log and all. What start_eal() has started stays to the end of the process, in which DPDK's
// log is silent and its errors become part of ours.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace natagg::worker {

/// Starts it, unless it runs: with `arguments`, separated by blanks, or where there are none with
/// memory that is no hugepages; with one thread of DPDK's, which sleeps, and a file prefix of this
/// process's own; and without taking any device. Neither affinity nor signals of the caller change.
/// Throws Error.
void start_eal(const std::string& arguments);

/// Held while devices come and go, which DPDK does not guard against other threads.
[[nodiscard]] std::unique_lock<std::mutex> lock_devices();

/// What DPDK logs from now on may explain an error.
void forget_dpdk_errors();

/// Throws the NATAGG_SYSTEM_ERROR of a call to DPDK: "rte_dev_probe(net_x): No such device; DPDK:
/// ...; <remedy>". `code` is an errno, positive or negative, or -1 for none.
[[noreturn]] void throw_dpdk_error(int code, const std::string& call, std::string_view remedy);

}  // namespace natagg::worker
