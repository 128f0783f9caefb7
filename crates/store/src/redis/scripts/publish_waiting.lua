-- Publishes how many tickets wait in all lines. Expires, so that a count without a leader refuses no
-- joins for long: later than the longest tick, 60 s.
-- KEYS: 1 count
-- ARGV: 1 tickets · 2 milliseconds
-- Reply: 'OK'
allow_oom(KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'OK'
