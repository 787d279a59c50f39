// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-report: how far an all-reduce's result is from the exact sum, what theory predicts, and
// what it cost in bytes. Exit status: 0 done, 1 a file cannot be read, 2 wrong usage.
#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "proto/packet.hpp"
#include "tools/error_budget.hpp"
#include "tools/exponent_histogram.hpp"
#include "tools/tensor_data.hpp"

namespace natagg::tools {
namespace {

namespace po = boost::program_options;

struct ReportOptions {
  std::vector<std::string> inputs;
  std::string result;
  bool average = false;
  int shift = 0;
  std::size_t values = proto::values_for_mtu(1500);
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

struct Data {
  std::vector<std::vector<float>> inputs;
  std::vector<float> result;
};

bool parse(int argc, const char* const* argv, ReportOptions& options) {
  po::options_description description(
      "natagg-report: an all-reduce's error beside theory, and its bytes");
  description.add_options()                                                                  //
      ("average", po::bool_switch(&options.average), "the result is an average, not a sum")  //
      ("help", "print this and exit")                                                        //
      ("inputs", po::value(&options.inputs)->required()->multitoken()->value_name("file..."),
       "each rank's float32 values")  //
      ("received", po::value(&options.received)->value_name("bytes"),
       "UDP payload that one rank received, as measured")  //
      ("result", po::value(&options.result)->required()->value_name("file"),
       "float32 values that a rank got, with stochastic rounding")                       //
      ("sent", po::value(&options.sent)->value_name("bytes"), "the same, that it sent")  //
      ("shift", po::value(&options.shift)->default_value(0), "the job's")                //
      ("values", po::value(&options.values)->default_value(options.values), "a packet");
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(description).positional({}).run(), given);
  if (given.count("help") != 0) {
    std::cout << description << '\n';
    return false;
  }
  po::notify(given);
  if (options.values == 0) throw po::error("--values is at least 1");
  return true;
}

std::vector<float> read_floats(const std::string& path) {
  const Tensor tensor = read_tensor(path, DataType::kFloat32);
  const std::span<const float> values = tensor.values<float>();
  return {values.begin(), values.end()};
}

Data load(const ReportOptions& options) {
  Data data;
  data.result = read_floats(options.result);
  for (const std::string& path : options.inputs) {
    data.inputs.push_back(read_floats(path));
    if (data.inputs.back().size() == data.result.size()) continue;
    throw std::runtime_error(path + ": has " + std::to_string(data.inputs.back().size()) +
                             " values, the result " + std::to_string(data.result.size()));
  }
  return data;
}

/// A row of the error table: a squared norm relative to that of the exact sum.
void print_error(const std::string& label, double squared, double sum) {
  std::cout << "  " << std::left << std::setw(44) << label << std::right << std::scientific
            << std::setprecision(4) << std::setw(12) << (sum > 0 ? squared / sum : 0.0) << '\n';
}

void print_errors(const ErrorBudget& budget) {
  std::cout << "squared error over the squared norm of the exact sum\n";
  print_error("measured", budget.measured, budget.sum);
  if (budget.aggregator_variance) {
    print_error("expected of this data", budget.worker_variance + *budget.aggregator_variance,
                budget.sum);
  }
  print_error("  of it by rounding at the workers", budget.worker_variance, budget.sum);
  if (budget.aggregator_variance) {
    print_error("  of it by rounding at the aggregator", *budget.aggregator_variance, budget.sum);
  }
  print_error("  at the aggregator at most (w = 1/8)", budget.aggregator_bound(), budget.sum);
  print_error("at most, any data of these norms (w = 1/8)", budget.bound(), budget.sum);
}

void print_traffic(const char* label, double bytes, double values, double ring) {
  std::cout << "  " << std::left << std::setw(44) << label << std::right << std::fixed
            << std::setprecision(0) << std::setw(12) << bytes << std::setprecision(3)
            << std::setw(8) << bytes / values << " a value";
  if (bytes > 0 && ring > 0)
    std::cout << std::setprecision(2) << std::setw(8) << ring / bytes << "x less";
  std::cout << '\n';
}

/// A ring all-reduce sends and receives 2 (n - 1)/n float32 a value and rank: 8 (n - 1)/n bytes
/// each way, where natagg sends and receives one byte and its share of the header.
void print_bytes(const ReportOptions& options, std::size_t ranks, std::size_t length) {
  const auto values = static_cast<double>(length);
  const auto n = static_cast<double>(ranks);
  const std::size_t packets = (length + options.values - 1) / options.values;
  const double ring = 8 * (n - 1) / n * values;
  std::cout << "bytes through one rank's link, each way\n";
  print_traffic("float32 ring all-reduce, values alone", ring, values, 0);
  print_traffic("natagg, values alone", values, values, ring);
  print_traffic("natagg with its headers",
                values + static_cast<double>(packets * sizeof(proto::Header)), values, ring);
  if (options.sent > 0) {
    print_traffic("measured: sent", static_cast<double>(options.sent), values, ring);
  }
  if (options.received > 0) {
    print_traffic("measured: received", static_cast<double>(options.received), values, ring);
  }
}

void print_histogram(const Data& data) {
  ExponentHistogram histogram;
  for (const std::vector<float>& input : data.inputs) histogram.add(input);
  std::cout << "exponents of all ranks' inputs\n" << histogram.to_text();
}

void report(const ReportOptions& options) {
  const Data data = load(options);
  const double scale = options.average ? static_cast<double>(data.inputs.size()) : 1.0;
  std::cout << data.inputs.size() << " ranks, " << data.result.size() << " values\n";
  print_errors(compare(data.inputs, data.result, scale, options.shift));
  print_bytes(options, data.inputs.size(), data.result.size());
  print_histogram(data);
}

}  // namespace
}  // namespace natagg::tools

int main(int argc, char** argv) {
  using namespace natagg::tools;
  try {
    ReportOptions options;
    if (parse(argc, argv, options)) report(options);
    return 0;
  } catch (const boost::program_options::error& error) {
    std::cerr << "natagg-report: " << error.what() << "; --help lists the options\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "natagg-report: " << error.what() << '\n';
    return 1;
  }
}
