-- Settings that survive a data loss. See docs/adr/018-settings-that-survive.md.

-- Record a change of the settings of the item `id`, whose hash is `key`: its control version grows, and the
-- leader publishes its settings. The version is at least `now` (ms), so that it also grows after a loss.
local function bump_control(key, id, now)
  local version, tail = unpack(redis.call('HMGET', key, 'controlVersion', 'tail'))
  version = format_number(math.max(now, tonumber(version or '0') + 1))
  redis.call('HSET', key, 'controlVersion', version, 'controlTail', tail or '0')
  redis.call('ZADD', CHANGED, version, id)
end
