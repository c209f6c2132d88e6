// SPDX-License-Identifier: Apache-2.0
/** A request, and the list of the moves that it asks for. */
package org.windlass.reshard.request;
