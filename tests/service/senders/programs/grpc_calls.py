"""Make calls of gRPC with these bytes as messages; print the status of each, and the answer.

grpc_calls.py ADDRESS GZIP|NONE HEX...
"""

import json
import sys

import grpc

address, compression, *messages = sys.argv[1:]
channel = grpc.insecure_channel(address)
export = channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export")
told = []
for message in messages:
    # `COUNTxHEX` is a message that repeats bytes.
    times, _, part = message.rpartition("x")
    try:
        answer = export(bytes.fromhex(part) * int(times or 1), compression=grpc.Compression[compression], timeout=30)
        told.append(["OK", answer.hex()])
    except grpc.RpcError as error:
        told.append([error.code().name, error.details()])
json.dump(told, sys.stdout)
