#!/usr/bin/env bash
# topics.sh BROKER: creates the topics that are not there yet. infra/kafka/broker.sh has the same list.
set -euo pipefail

for topic in item.changed:compact order.closed token.activated token.closed line.opened:compact line.closed control.changed:compact item.changed.dlq order.closed.dlq; do
  /opt/kafka/bin/kafka-topics.sh --bootstrap-server "$1" --create --if-not-exists \
    --topic "${topic%:compact}" --partitions 4 --replication-factor 1 \
    --config cleanup.policy="$([ "$topic" = "${topic%:compact}" ] && echo delete || echo compact)"
done
