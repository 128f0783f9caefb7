-- Delete a reserved line with its item and tickets. Redis deletes its slices of liveness when their TTL ends.
-- KEYS: line
-- ARGV: id
-- Reply: 'OK'
-- Atomic: the line is deleted completely or not at all.
redis.call('UNLINK', ITEM, WAITING, RETURNING, MISSED, MISSED_UNTIL, ENTERED, ENTERED_UNTIL, DEPARTED, ENDED,
  SLICE_STARTS, RATE, LEAVES, RESERVED_SLOTS, CODES)
redis.call('SREM', ACTIVE, id)
redis.call('SREM', ITEMS, id)
redis.call('ZREM', CHANGED, id)
return 'OK'
