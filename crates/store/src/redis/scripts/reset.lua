-- End the line and begin a new one: numbers issued before are not valid any more.
-- KEYS: line
-- ARGV: now (ms)
-- Reply: HGETALL item, or {} if there is none
-- Atomic: each join is before or after the restart.
if not item_exists() then return {} end
restart_line()
return bump_revision(now)
