-- The item of a line: its fields, its revision, and the restart of its line.

-- Return the named fields of the item as a table; absent ones are false.
local function item_fields(...)
  local values, item = redis.call('HMGET', ITEM, ...), {}
  for i, name in ipairs({...}) do item[name] = values[i] end
  return item
end

-- Return whether the item exists and is not removed.
local function item_exists()
  return redis.call('HGET', ITEM, 'removed') == '0'
end

-- Record that the item was changed at `now` (text), and return it as HGETALL does.
local function bump_revision(now)
  redis.call('HINCRBY', ITEM, 'revision', 1)
  redis.call('HSET', ITEM, 'updatedAt', now)
  return redis.call('HGETALL', ITEM)
end

-- End the waiting, returning and missed tickets without events. Entries stay. Numbers issued before are below
-- validFrom afterwards.
local function restart_line()
  local item = item_fields('tail', 'dropped', 'cohortSize')
  local ended = redis.call('ZCARD', WAITING) + redis.call('ZCARD', RETURNING) + redis.call('HLEN', MISSED)
  allow_oom(ITEM)
  redis.call('HINCRBY', ITEM, 'ended', ended)
  redis.call('HSET', ITEM,
    'dropped', format_number(tonumber(item.dropped) + redis.call('LLEN', DEPARTED)),
    'validFrom', format_number(tonumber(item.tail) + 1), 'recoveringUntil', '0', 'behindUntil', '0')
  if (item.cohortSize or '') ~= '' then redis.call('HSET', ITEM, 'cohortServed', item.cohortSize) end
  redis.call('UNLINK', WAITING, RETURNING, MISSED, MISSED_UNTIL, DEPARTED, SLICE_STARTS)
end
