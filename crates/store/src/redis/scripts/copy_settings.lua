-- Write a partition's copy of the settings, unless it has a later one.
-- KEYS: SETTINGS_COPY
-- ARGV: revision · token_count_to_move
-- Reply: 1, or 0 if the copy is later or equal
-- Atomic: an earlier revision never overwrites a later one.
local stored_revision, stored_quota = unpack(redis.call('HMGET', SETTINGS_COPY, 'revision', 'tokenCountToMove'))
if tonumber(revision) < tonumber(stored_revision or '0') then return 0 end
if revision == stored_revision and token_count_to_move == stored_quota then return 0 end
allow_oom(SETTINGS_COPY)
redis.call('HSET', SETTINGS_COPY, 'revision', revision, 'tokenCountToMove', token_count_to_move)
return 1
