-- Count the tickets of a line by state, and in total.
-- KEYS: line
-- ARGV: none
-- Reply: {waiting, returning, missed, entered, base, front, tail, joined, admitted, ended,
--         and of those completed, expired, left, abandoned, how many lanes the item has} or {} if there is no item
-- Atomic: changes nothing; all counts are of one moment.
if not item_exists() then return {} end
local item = add_line_fields({}, {'cohortFirst', 'cohortSize', 'cohortServed', 'drawSeed', 'base', 'tail', 'joined',
  'admitted', 'ended', 'ended:C', 'ended:E', 'ended:L', 'ended:A'})
local function count(field) return tonumber(item[field] or '0') end
local in_use = item_fields('lanes', 'laneCount')
local _, in_policy = string.gsub(in_use.lanes or '', ':', ':')
local lanes = math.max(in_policy, tonumber(in_use.laneCount or '0'))
return {
  redis.call('ZCARD', WAITING),
  redis.call('ZCARD', RETURNING),
  redis.call('HLEN', MISSED),
  redis.call('HLEN', ENTERED),
  count('base'),
  first_rank(item, 0),
  count('tail'),
  count('joined'),
  count('admitted'),
  count('ended'),
  count('ended:C'),
  count('ended:E'),
  count('ended:L'),
  count('ended:A'),
  lanes,
}
