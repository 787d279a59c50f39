// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A daemon that is killed leaves the socket files of its net_memif devices, and DPDK's driver does
// not start where there is one.
#pragma once

#include <string>
#include <vector>

namespace natagg::aggregator::io {

/// The socket files of the net_memif servers among EAL's `arguments`, each once.
[[nodiscard]] std::vector<std::string> memif_server_sockets(
    const std::vector<std::string>& arguments);

/// Removes `path` if it is a socket at which nobody listens. Whatever else is there stays, for the
/// driver to refuse. Returns whether it did.
bool remove_stale_socket(const std::string& path);

}  // namespace natagg::aggregator::io
