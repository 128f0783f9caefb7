-- Revision of the settings.

-- Return the next revision of the settings in the hash `key`. It is at least the server's clock in ms, so
-- that it also grows after the settings were lost.
local function next_settings_revision(key)
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  return format_number(math.max(now, tonumber(redis.call('HGET', key, 'revision') or '0') + 1))
end
