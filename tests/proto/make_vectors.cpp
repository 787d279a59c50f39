// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Usage: natagg-make-vectors DIRECTORY
// Writes the golden vectors. A change in them is a change of the protocol: think before.

#include <fstream>
#include <iostream>

#include "vectors.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: natagg-make-vectors DIRECTORY\n";
    return 2;
  }
  for (const natagg::vectors::File& file : natagg::vectors::kFiles) {
    const std::string path = std::string(argv[1]) + '/' + std::string(file.name);
    std::ofstream out(path, std::ios::binary);
    out << file.text();
    out.close();
    if (!out) {
      std::cerr << "cannot write " << path << '\n';
      return 1;
    }
  }
  return 0;
}
