-- Change settings of all lines. The revision grows with every change and orders the copies in the
-- partitions; it carries the server's clock, so that it also grows after the settings were lost.
-- KEYS: 1 settings
-- ARGV: field, value, …
-- Reply: 'OK'
allow_oom(KEYS[1])
redis.call('HSET', KEYS[1], 'revision', settings_revision(KEYS[1]), unpack(ARGV))
return 'OK'
