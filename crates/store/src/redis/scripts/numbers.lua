-- Numbers are exact. Prepended to every script, never run alone.

-- Redis writes numbers with 17 digits, but Lua, where it turns one into text by itself, with 14.
local function txt(number) return string.format('%.0f', number) end

-- Versions may exceed what a double holds, so they are compared as decimal text.
local function is_newer(version, stored)
  if #version ~= #stored then return #version > #stored end
  return version > stored
end
