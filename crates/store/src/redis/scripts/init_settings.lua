-- Write the settings if there are none: the first start of a store.
-- KEYS: SETTINGS
-- ARGV: partitions · token_count_to_move · tick_ms
-- Reply: the stored number of partitions
-- Atomic: of two processes that start at the same time, one writes.
allow_oom(SETTINGS)
redis.call('HSETNX', SETTINGS, 'partitions', partitions)
redis.call('HSETNX', SETTINGS, 'tokenCountToMove', token_count_to_move)
redis.call('HSETNX', SETTINGS, 'tickMs', tick_ms)
redis.call('HSETNX', SETTINGS, 'revision', next_settings_revision(SETTINGS))
return tonumber(redis.call('HGET', SETTINGS, 'partitions'))
