-- End the lines of all lanes and begin new ones: numbers issued before are not valid any more.
-- KEYS: line, then all lanes
-- ARGV: now (ms)
-- Reply: HGETALL item, or {} if there is none
-- Atomic: each join is before or after the restart.
if not item_exists() then return {} end
restart_lines()
bump_control(ITEM, redis.call('HGET', ITEM, 'id'), tonumber(now))
return bump_revision(now)
