-- Delete a reserved line with its item and tickets. Its slices of liveness expire by themselves.
-- KEYS: line
-- ARGV: id
-- Reply: 'OK'
-- Atomic: the line exists or is gone.
redis.call('UNLINK', ITEM, WAITING, RETURNING, MISSED, MISSED_UNTIL, ENTERED, ENTERED_UNTIL, DEPARTED, ENDED,
  SLICE_STARTS, RATE, LEAVES, RESERVED_SLOTS)
redis.call('SREM', ACTIVE, id)
redis.call('SREM', ITEMS, id)
return 'OK'
