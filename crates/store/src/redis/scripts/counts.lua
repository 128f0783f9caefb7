-- Count the tickets of a line by state, and in total.
-- KEYS: line
-- ARGV: none
-- Reply: {waiting, returning, missed, entered, base, front, tail, joined, admitted, ended,
--         and of those completed, expired, left, abandoned} or {} if there is no item
-- Atomic: changes nothing; all counts are of one moment.
if not item_exists() then return {} end
local item = item_fields('cohortFirst', 'cohortSize', 'cohortServed', 'drawSeed', 'base', 'tail', 'joined',
  'admitted', 'ended', 'ended:C', 'ended:E', 'ended:L', 'ended:A')
local function count(field) return tonumber(item[field] or '0') end
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
}
