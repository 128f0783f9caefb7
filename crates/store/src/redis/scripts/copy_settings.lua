-- Write a partition's copy of the settings, unless it has a later one.
-- KEYS: 1 copy of the settings
-- ARGV: 1 revision · 2 tokenCountToMove
-- Reply: 1, or 0 if the copy is later or says the same
local revision, quota = unpack(redis.call('HMGET', KEYS[1], 'revision', 'tokenCountToMove'))
if tonumber(ARGV[1]) < tonumber(revision or '0') then return 0 end
if ARGV[1] == revision and ARGV[2] == quota then return 0 end
allow_oom(KEYS[1])
redis.call('HSET', KEYS[1], 'revision', ARGV[1], 'tokenCountToMove', ARGV[2])
return 1
