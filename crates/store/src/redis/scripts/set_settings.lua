-- Change settings of all lines. The revision grows with every change and orders the copies in the
-- partitions.
-- KEYS: SETTINGS
-- ARGV: fields.. (field, value, …)
-- Reply: 'OK'
-- Atomic: each change has its own revision.
allow_oom(SETTINGS)
redis.call('HSET', SETTINGS, 'revision', next_settings_revision(SETTINGS), unpack(ARGV, FIELDS))
return 'OK'
