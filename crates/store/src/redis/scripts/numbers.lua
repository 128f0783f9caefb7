-- Numbers are exact, and servers are told apart. Prepended to every script, never run alone.

-- Redis writes numbers with 17 digits, but Lua, where it turns one into text by itself, with 14.
local function txt(number) return string.format('%.0f', number) end

-- The highest number there can be, and how long after a loss numbers of old are taken back.
local HIGHEST, TAKE_BACK_MS = 281474976710655, 3000000
-- How many lost generations a partition remembers. All ids have the same length.
local LOST_GENERATIONS = 16

-- Return the next revision of the settings.
local function settings_revision(key)
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  return txt(math.max(now, tonumber(redis.call('HGET', key, 'revision') or '0') + 1))
end

-- Versions may exceed what a double holds, so they are compared as decimal text.
local function is_newer(version, stored)
  if #version ~= #stored then return #version > #stored end
  return version > stored
end

-- Which server this is. Another one than before has been restarted, or was a replica: it may have
-- lost the newest writes.
local function server()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
end

-- Lets this script write although the server is full. At maxmemory with noeviction Redis and Valkey refuse a
-- command with the flag deny-oom (HSET, ZADD, XADD, SET, INCRBY, LPUSH, …) inside a script without a
-- shebang only while the script has called no write command. PERSIST is a write command without that
-- flag, and changes nothing at a key that has no TTL or does not exist: `key` must be one of those.
-- Called by every script that frees memory, stops admission or serves tickets that exist; a join of a
-- new ticket must not call it.
local function allow_oom(key) redis.call('PERSIST', key) end

-- Compare the generation that the calling process found when it started (`known`) with the stored one in
-- the hash `key`. A different one, or none, is evidence that the partition lost its data: record the loss,
-- once per generation. A partition without a record receives the id `fresh`. Return until when the
-- recorded loss lets numbers be reclaimed; 0 if no loss is recorded.
local function check_generation(key, known, fresh, now)
  local id, lost, loss_at = unpack(redis.call('HMGET', key, 'id', 'lost', 'lossAt'))
  lost = lost or ''
  if known ~= '' and known ~= id and not string.find(lost, known, 1, true) then
    lost = string.sub(lost .. ',' .. known, -LOST_GENERATIONS * (#known + 1))
    allow_oom(key)
    redis.call('HSET', key, 'id', id or fresh, 'lost', lost, 'lossAt', txt(now))
    loss_at = now
  end
  return loss_at and tonumber(loss_at) + TAKE_BACK_MS or 0
end
