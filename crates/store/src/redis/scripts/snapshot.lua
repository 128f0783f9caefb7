-- Return what a pod needs to answer polls of a line.
-- KEYS: line
-- ARGV: base · read (int, changes the pod has read of that base) · max_changes (int)
-- Reply: {HGETALL item, HGETALL line (empty for the standard lane), front and frontier (ranks), waiting, returning, entered, HGETALL rate, changes, count
--         of changes read after this call, 0|1 more} or {} if there is no item. A change is the number that
--         departed, or '+from:to' for numbers at or below the base that wait
-- Atomic: changes nothing; all parts are of one moment.
local fields = redis.call('HGETALL', ITEM)
local item = {}
for i = 1, #fields, 2 do item[fields[i]] = fields[i + 1] end
if item.removed ~= '0' then return {} end
local line_fields = LINE == ITEM and {} or redis.call('HGETALL', LINE)
if LINE ~= ITEM then item = {} end
for i = 1, #line_fields, 2 do item[line_fields[i]] = line_fields[i + 1] end

local dropped, length = tonumber(item.dropped or '0'), redis.call('LLEN', DEPARTED)
if base ~= (item.base or '0') or read > dropped + length or read < dropped then read = dropped end
local first, changes = read - dropped, {}
if first < length then changes = redis.call('LRANGE', DEPARTED, first, first + max_changes - 1) end
local front, line_base = first_rank(item, 0), tonumber(item.base or '0')
return {
  fields,
  line_fields,
  front,
  front > line_base and front or first_rank(item, line_base + 1),
  redis.call('ZCARD', WAITING),
  redis.call('ZCARD', RETURNING),
  redis.call('HLEN', ENTERED),
  redis.call('HGETALL', RATE),
  changes,
  read + #changes,
  first + #changes < length and 1 or 0,
}
