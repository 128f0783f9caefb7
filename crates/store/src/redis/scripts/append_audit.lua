-- Append an entry to the audit log and delete the oldest beyond the limit.
-- KEYS: AUDIT_LOG
-- ARGV: entry · max_entries (int)
-- Reply: none
-- Atomic: the log never exceeds the limit.
allow_oom(AUDIT_LOG)
redis.call('LPUSH', AUDIT_LOG, entry)
redis.call('LTRIM', AUDIT_LOG, 0, max_entries - 1)
