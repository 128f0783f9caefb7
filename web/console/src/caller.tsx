// Who is signed in, and which controls the role permits.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { type Api, Refusal } from "./api.js";
import { t } from "./i18n.js";

export const ROLES = ["viewer", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

export interface Me {
  /** Null for the admin token. */
  name: string | null;
  role: Role;
  /** The beginning of the ids of the items that the caller may use; null for all. */
  items: string | null;
}

/** The holder of the admin token; also what a replica of an older release, which has no roles, permits. */
const ADMIN: Me = { name: null, role: "admin", items: null };

export const Caller = createContext<Me>(ADMIN);

/** Loads who is signed in; null until it is known. */
export function useMe(api: Api): Me | null {
  const [me, setMe] = useState<Me | null>(null);
  useEffect(() => {
    let ended = false;
    let timer = 0;
    const load = async () => {
      const found = await api.get<Me>("/me").catch((error: unknown) => (error instanceof Refusal ? ADMIN : null));
      if (ended) return;
      if (found) return setMe(found);
      timer = window.setTimeout(() => void load(), 1_000);
    };
    void load();
    return () => {
      ended = true;
      window.clearTimeout(timer);
    };
  }, [api]);
  return me;
}

export function useMay(role: Role): boolean {
  return ROLES.indexOf(useContext(Caller).role) >= ROLES.indexOf(role);
}

/** Disables the controls in it for callers without the role. The server refuses their calls in any case. */
export function Permitted({ role, children }: { role: Role; children: ComponentChildren }) {
  const may = useMay(role);
  if (may) return <>{children}</>;
  return (
    <fieldset class="forbidden" disabled title={t("needsRole", { role: t(`role ${role}`) })}>
      {children}
    </fieldset>
  );
}
