-- Functions of all scripts: exact numbers, versions, the identity of the server, writes at maxmemory.

-- Format an integer without loss. Lua's own conversion keeps 14 digits, numbers of tickets have 15.
local function format_number(number) return string.format('%.0f', number) end

-- Return whether `version` is above `stored`. Both are decimal text, because versions may exceed the
-- 53 bits of a double.
local function is_newer(version, stored)
  if #version ~= #stored then return #version > #stored end
  return version > stored
end

-- Return the run id of this server. Another run id than before means that the server was restarted or
-- was a replica, so that it may have lost the newest writes.
local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
end

-- Allow this script to write although the server has reached maxmemory. With noeviction, Redis and Valkey
-- refuse a command with the flag deny-oom (HSET, ZADD, XADD, SET, INCRBY, LPUSH, …) inside a script without a
-- shebang only while the script has called no write command. PERSIST is a write command without that flag. It
-- removes a TTL, so `key` must have none, must not exist, or must get a new TTL from the script. Call it in
-- every script that frees memory, stops admission or serves tickets that exist; a join of a new ticket must
-- not call it.
local function allow_oom(key) redis.call('PERSIST', key) end
