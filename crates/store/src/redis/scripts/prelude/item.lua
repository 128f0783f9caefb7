-- The item and the line of a lane: their fields and the revision. The hash LINE has the counters of the
-- line; that of the standard lane is the hash of the item.

-- Return the named fields of the item as a table; absent ones are false.
local function item_fields(...)
  local values, item = redis.call('HMGET', ITEM, ...), {}
  for i, name in ipairs({...}) do item[name] = values[i] end
  return item
end

-- Add the fields of the line that the list `names` names to `item`, and return it.
local function add_line_fields(item, names)
  for i, value in ipairs(redis.call('HMGET', LINE, unpack(names))) do item[names[i]] = value end
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
