export class Handover {}
