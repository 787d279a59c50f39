// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The natagg packet for switches: the same layout as proto/packet.hpp, whose specification's table
// tests/repository compares with this file.

#ifndef NATAGG_HEADERS_P4
#define NATAGG_HEADERS_P4

const bit<16> NATAGG_MAGIC = 0x4E41;
const bit<8> NATAGG_VERSION = 1;
const bit<16> NATAGG_PORT = 4790;

enum bit<8> natagg_type_t {
    HELLO = 1,
    OFFER = 2,
    JOIN = 3,
    WELCOME = 4,
    REFUSE = 5,
    LEAVE = 6,
    HEARTBEAT = 7,
    PROBE = 8,
    DATA = 9,
    RESULT = 10,
    PENDING = 11,
    ABORT = 12,
    MOVE = 13,
    CHALLENGE = 14,
    PARTIAL = 15,
    NACK = 16
}

header natagg_t {
    bit<16> magic;
    bit<8> version;
    natagg_type_t type;
    bit<32> job;
    bit<32> epoch;
    bit<16> rank;
    bit<16> slot;
    bit<32> sequence;
    bit<32> operation;
    bit<64> element;
    bit<64> fingerprint;
    bit<16> count;
    int<8> shift;
    bit<8> flags;
}

// One value: sign, zero or special flag, exponent code.
header nat8_t {
    bit<1> sign;
    bit<1> flag;
    bit<6> code;
}

#endif
