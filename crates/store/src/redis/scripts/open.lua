-- First start writes the settings, every later one reads them.
-- KEYS: 1 settings
-- ARGV: 1 partitions · 2 tokenCountToMove · 3 tickMs
-- Reply: {partitions}
allow_oom(KEYS[1])
redis.call('HSETNX', KEYS[1], 'partitions', ARGV[1])
redis.call('HSETNX', KEYS[1], 'tokenCountToMove', ARGV[2])
redis.call('HSETNX', KEYS[1], 'tickMs', ARGV[3])
redis.call('HSETNX', KEYS[1], 'revision', settings_revision(KEYS[1]))
return tonumber(redis.call('HGET', KEYS[1], 'partitions'))
