-- Publish how many tickets wait in all lines. The count expires later than the longest tick (60 s), so that
-- without a leader an old count stops refusing joins.
-- KEYS: WAITING_COUNT
-- ARGV: tickets · ttl_ms
-- Reply: 'OK'
-- Atomic: one command; a script so that it works at maxmemory.
allow_oom(WAITING_COUNT)
redis.call('SET', WAITING_COUNT, tickets, 'PX', ttl_ms)
return 'OK'
