#!/bin/sh
# Prints whether an order can be refunded: script.sh DAYS_SINCE_DELIVERY
set -eu
if [ "$1" -le 30 ]; then
  echo '{"refund": true}'
else
  echo '{"refund": false, "reason": "delivered more than 30 days ago"}'
fi
