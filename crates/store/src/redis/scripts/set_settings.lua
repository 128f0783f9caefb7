-- Changes settings of all lines.
-- KEYS: 1 settings
-- ARGV: field, value, …
-- Reply: 'OK'
allow_oom(KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV))
return 'OK'
