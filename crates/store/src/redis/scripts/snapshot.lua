-- Return what a pod needs to answer polls of a line.
-- KEYS: line
-- ARGV: base · read (int, changes the pod has read of that base) · max_changes (int)
-- Reply: {HGETALL item, front and frontier (ranks), waiting, returning, entered, HGETALL rate, changes, count
--         of changes read after this call, 0|1 more} or {} if there is no item. A change is the number that
--         departed, or '+from:to' for numbers at or below the base that wait
-- Atomic: changes nothing; all parts are of one moment.
local fields = redis.call('HGETALL', ITEM)
local item = {}
for i = 1, #fields, 2 do item[fields[i]] = fields[i + 1] end
if item.removed ~= '0' then return {} end

local dropped, length = tonumber(item.dropped), redis.call('LLEN', DEPARTED)
if base ~= item.base or read > dropped + length or read < dropped then read = dropped end
local first, changes = read - dropped, {}
if first < length then changes = redis.call('LRANGE', DEPARTED, first, first + max_changes - 1) end
local front, item_base = first_rank(item, 0), tonumber(item.base)
return {
  fields,
  front,
  front > item_base and front or first_rank(item, item_base + 1),
  redis.call('ZCARD', WAITING),
  redis.call('ZCARD', RETURNING),
  redis.call('HLEN', ENTERED),
  redis.call('HGETALL', RATE),
  changes,
  read + #changes,
  first + #changes < length and 1 or 0,
}
