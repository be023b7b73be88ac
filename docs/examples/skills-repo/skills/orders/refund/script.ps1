# Prints whether an order can be refunded: script.ps1 DAYS_SINCE_DELIVERY
param([int]$Days)
if ($Days -le 30) { '{"refund": true}' } else { '{"refund": false, "reason": "delivered more than 30 days ago"}' }
