-- Numbers are exact, and servers are told apart. Prepended to every script, never run alone.

-- Redis writes numbers with 17 digits, but Lua, where it turns one into text by itself, with 14.
local function txt(number) return string.format('%.0f', number) end

-- The highest number there can be, and how long after a loss numbers of old are taken back.
local HIGHEST, TAKE_BACK_MS = 281474976710655, 3000000

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
